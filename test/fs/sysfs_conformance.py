#!/usr/bin/env python3
"""Do attribute files behave as those of Linux's sysfs do, to whoever sees but the files?

  sysfs_conformance.py --number FILE --bool FILE --read-only FILE [--write-only FILE] [--words FILE]
                       [--link LINK] [--values A,B] [--unit TEXT] [--decimal] [--largest N]
                       [--wakes] [--imitation] [--differs ID,ID...] [-v]

It needs paths only: on real sysfs it checks itself, then on what imitates sysfs. Run it as root; some
checks become uid 65534. Values are put back at the end. Each check that fails is printed with what it
got and wanted; the status is 1 if there is one.

  --number      mode 0644, shows "N\\n"; a store takes what kstrtou*() does, of base 0
  --decimal     ... of base 10
  --unit        what it shows behind N
  --largest     the largest N that its type has
  --bool        mode 0644, a store takes what kstrtobool() does; shows Y and N, or 1 and 0
  --read-only   mode 0444, without a store
  --write-only  mode 0200, without a show
  --words       mode 0644, shows "one [two] three\\n", a store takes one of them
  --link        a link as those of /sys/class, relative and into devices/
  --wakes       a store into --number wakes those who poll it, as sysfs_notify() does
  --imitation   the differences of KNOWN are expected, each of them
  --differs     so are those of these checks, if there are such
"""
import argparse
import ctypes
import errno
import fcntl
import mmap
import os
import pickle
import re
import select
import stat
import subprocess
import sys
import tempfile
import time

# What a file system of FUSE cannot give, or this one does not, and why.
KNOWN = {
    "statfs.type": "the kernel says FUSE_SUPER_MAGIC for every file system of FUSE",
    "read.mmap.private": "FUSE refuses shared mappings alone; pages of others cannot be had, which is SIGBUS",
    "xattr.trusted": "nothing keeps extended attributes",
}
KERNEL = tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2])
if KERNEL >= (6, 5):
    # EINVAL, upon which cat, cp and the copies of libraries read(2).
    KNOWN["read.sendfile"] = KNOWN["read.splice"] = "FUSE reads through its page cache, which shows other texts"
if KERNEL < (6, 9):
    KNOWN["names.handle"] = "FUSE has handles for what the kernel remembers"
NOBODY = 65534
READABLE = select.POLLIN
CHANGED = select.POLLPRI | select.POLLERR
CREATES = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


def options():
    parser = argparse.ArgumentParser()
    for name in ("number", "bool", "read-only"):
        parser.add_argument("--" + name, required=True)
    for name in ("write-only", "words", "link"):
        parser.add_argument("--" + name)
    parser.add_argument("--values", default="1000,32")
    parser.add_argument("--unit", default="")
    parser.add_argument("--largest", type=int, default=2**32 - 1)
    parser.add_argument("--differs", default="")
    for name in ("--decimal", "--wakes", "--imitation", "-v"):
        parser.add_argument(name, action="store_true")
    return parser.parse_args()


args = options()
directory = os.path.dirname(args.number)
one, two = (int(value) for value in args.values.split(","))
expected = set(args.differs.split(",")) | (set(KNOWN) if args.imitation else set())
counts = {"hold": 0, "differ": 0, "are expected to differ": 0}


def says(passed, name, got, wanted):
    """Counts a check, and prints it if it says what nobody expects."""
    if passed and args.imitation and name in KNOWN:
        print(f"{name}: KNOWN says that it differs, and it does not")
        counts["differ"] += 1
    elif passed:
        counts["hold"] += 1
        if args.v:
            print(f"{name}: holds")
    elif name in expected:
        counts["are expected to differ"] += 1
        if args.v:
            print(f"{name}: differs as expected: {got!r}")
    else:
        counts["differ"] += 1
        print(f"{name}: got {got!r}, sysfs gives {wanted!r}")


def check(name, got, wanted):
    says(got == wanted, name, got, wanted)


def call(function, *arguments):
    """What the call returns, or the name of its errno."""
    try:
        return function(*arguments)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))


def opening(path, flags):
    result = call(os.open, path, flags)
    if isinstance(result, str):
        return result
    os.close(result)
    return "ok"


class File:
    """An open file that is closed at the end of the block."""

    def __init__(self, path, flags=os.O_RDONLY):
        self.number = os.open(path, flags)

    def __enter__(self):
        return self.number

    def __exit__(self, *_):
        os.close(self.number)


def content(path):
    with File(path) as file:
        pieces = list(iter(lambda: os.read(file, 1 << 16), b""))
    return b"".join(pieces)


def store(path, text, flags=CREATES):
    file = os.open(path, flags, 0o666)
    try:
        return os.write(file, text)
    finally:
        os.close(file)


def shown(value):
    return b"%d%s\n" % (value, args.unit.encode())


def as_nobody(checks):
    """Runs checks, which yields the arguments of check(), in a process of another user."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        try:
            told = list(checks())
        except Exception as error:
            told = [("nobody.crash", repr(error), "no exception")]
        os.write(theirs, pickle.dumps(told))
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        told = pickle.load(pipe)
    os.waitpid(child, 0)
    for row in told:
        check(*row)


def kinds():
    files = [("number", args.number, 0o644), ("bool", args.bool, 0o644), ("read_only", args.read_only, 0o444)]
    return files + ([("write_only", args.write_only, 0o200)] if args.write_only else [])


def check_what_stat_says():
    for kind, path, mode in kinds():
        status = os.lstat(path)
        check(f"stat.{kind}.mode", oct(status.st_mode), oct(stat.S_IFREG | mode))
        check(f"stat.{kind}.size", (status.st_size, status.st_blocks, status.st_blksize), (4096, 0, 4096))
        check(f"stat.{kind}.owner", (status.st_nlink, status.st_uid, status.st_gid), (1, 0, 0))
    status = os.stat(directory)
    entries = sum(entry.is_dir(follow_symlinks=False) for entry in os.scandir(directory))
    check("stat.directory", (oct(status.st_mode), status.st_size, status.st_nlink), ("0o40755", 0, 2 + entries))

    # Truncation moves the time, a write does not; neither moves the size.
    store(args.number, shown(one))
    before = os.stat(args.number).st_mtime_ns
    time.sleep(0.02)
    store(args.number, shown(one), os.O_WRONLY)
    check("stat.mtime.write", os.stat(args.number).st_mtime_ns, before)
    store(args.number, shown(one))
    check("stat.mtime.truncate", os.stat(args.number).st_mtime_ns > before, True)
    check("stat.size.write", os.stat(args.number).st_size, 4096)
    with File(args.number) as file:
        os.read(file, 9)
        check("stat.size.read", (os.fstat(file).st_size, os.stat(args.number).st_size), (4096, 4096))
    call(store, args.number, b"junk")
    check("stat.size.refused", os.stat(args.number).st_size, 4096)

    magic = subprocess.run(["stat", "-f", "-c", "%t", directory], capture_output=True, text=True).stdout.strip()
    check("statfs.type", magic, "62656572")
    numbers = os.statvfs(directory)
    check("statfs.numbers", (numbers.f_bsize, numbers.f_blocks, numbers.f_files, numbers.f_namemax), (4096, 0, 0, 255))


def check_directories():
    def listed():
        return [(entry.name, entry.inode(), entry.is_dir(follow_symlinks=False), entry.is_symlink())
                for entry in os.scandir(directory)]

    first = listed()
    check("directory.again", listed(), first)
    for name, inode, is_directory, is_link in first:
        status = os.lstat(f"{directory}/{name}")
        wanted = (status.st_ino, stat.S_ISDIR(status.st_mode), stat.S_ISLNK(status.st_mode))
        if (inode, is_directory, is_link) != wanted:
            check("directory.entries", (name, inode, is_directory, is_link), wanted)
    with File(directory, os.O_DIRECTORY) as file:
        check("directory.fsync", call(os.fsync, file), "EINVAL")
    if args.link:
        status, target = os.lstat(args.link), os.readlink(args.link)
        check("link.stat", (oct(status.st_mode), status.st_size), ("0o120777", 0))
        check("link.target", (target.startswith("../../devices/"), os.path.isdir(args.link)), (True, True))


def check_reads():
    whole = shown(one)
    store(args.number, whole)
    with File(args.number) as file:
        check("read.whole", os.read(file, 4096), whole)
        check("read.end", os.read(file, 4096), b"")
        check("read.at", [os.pread(file, *at) for at in ((2, 0), (99, 1), (9, len(whole)), (9, 4096))],
              [whole[:2], whole[1:], b"", b""])
        check("read.seek.end", (os.lseek(file, 0, os.SEEK_END), os.read(file, 9)), (4096, b""))
        check("read.seek.beyond", (call(os.lseek, file, 5000, os.SEEK_SET), call(os.read, file, 9)), (5000, b""))
    with File(args.number) as file:
        piece = os.read(file, 1)
        store(args.number, shown(two))
        check("read.in_pieces", piece + os.read(file, 99), whole)
        os.lseek(file, 0, os.SEEK_SET)
        check("read.rewound", os.read(file, 99), shown(two))
        store(args.number, whole)
        check("read.kept.start", os.pread(file, 99, 0), whole)
        store(args.number, shown(two))
        check("read.kept.elsewhere", os.pread(file, 99, 1), shown(two)[1:])
    with File(args.number) as first, File(args.number) as second:
        piece = os.read(first, 1)
        store(args.number, whole)
        check("read.two_files", (os.read(second, 99), piece + os.read(first, 99)), (whole, shown(two)))
    with File(args.number, os.O_RDWR) as file:
        written = os.write(file, shown(two))
        behind = os.read(file, 99)
        os.lseek(file, 0, os.SEEK_SET)
        check("read.read_write", (written, behind, os.read(file, 99)), (len(shown(two)), b"", shown(two)))
    value = shown(two)
    with File(args.number) as file:
        parts = [bytearray(1), bytearray(99)]
        check("read.vector", (call(os.preadv, file, parts, 0), b"".join(parts).rstrip(b"\0")), (len(value), value))
        for name, flags in (("shared", mmap.MAP_SHARED), ("private", mmap.MAP_PRIVATE)):
            check("read.mmap." + name, call(mmap.mmap, file, 4096, flags, mmap.PROT_READ), "ENODEV")
        check("read.fsync", call(os.fsync, file), None)
        check("read.ioctl", call(fcntl.ioctl, file, 0x5401, bytes(64)), "ENOTTY")
        check("read.flock", call(fcntl.flock, file, fcntl.LOCK_EX | fcntl.LOCK_NB), None)
        ours, theirs = os.pipe()
        sent = call(os.sendfile, theirs, file, 0, 99)
        os.close(theirs)
        check("read.sendfile", (sent, os.read(ours, 99)), (len(value), value))
        os.close(ours)
    with File(args.number) as file:
        ours, theirs = os.pipe()
        sent = call(os.splice, file, theirs, 99)
        os.close(theirs)
        check("read.splice", (sent, os.read(ours, 99)), (len(value), value))
        os.close(ours)
    check("read.bool", content(args.bool) in (b"Y\n", b"N\n", b"1\n", b"0\n"), True)


def stores(name, text, result, value, flags=CREATES):
    """A store of text gives the result, and then the number has the value; it was `one`."""
    store(args.number, shown(one))
    check("write." + name, (call(store, args.number, text, flags), content(args.number)), (result, shown(value)))


def check_texts_of_numbers():
    def takes(name, text, flags=CREATES):
        stores(name, text, len(text), two, flags)

    takes("newline", shown(two))
    takes("no_newline", b"%d" % two)
    takes("plus", b"+%d\n" % two)
    takes("nul", b"%d\0junk" % two)
    takes("append", shown(two), os.O_WRONLY | os.O_APPEND)
    takes("no_truncation", shown(two), os.O_WRONLY)
    takes("sync", shown(two), os.O_WRONLY | os.O_SYNC)
    stores("nothing", b"", 0, one)
    for name, text in {
            "blank": "\n", "leading_space": f" {two}\n", "trailing_space": f"{two} \n", "tab": f"\t{two}\n",
            "two_newlines": f"{two}\n\n", "carriage_return": f"{two}\r\n", "junk": f"{two}abc\n", "negative": "-1\n",
            "fraction": "1.5\n", "exponent": "1e3\n", "comma": "1,000\n", "underscore": "1_0\n", "plus_plus": "++5\n",
            "plus_minus": "+-5\n", "word": "abc\n", "two_lines": f"{two}\n{two}\n"}.items():
        stores("invalid." + name, text.encode(), "EINVAL", one)
    for name, text in {
            "type": f"{args.largest + 1}\n", "64_bits": f"{2**64}\n", "digits": "9" * 40 + "\n"}.items():
        stores("range." + name, text.encode(), "ERANGE", one)
    if args.decimal:
        stores("hexadecimal", b"0x%x\n" % two, "EINVAL", one)
        takes("zeros", b"00%d\n" % two)
        page = b"%04096d" % two
    else:
        takes("hexadecimal", b"0x%x\n" % two)
        takes("hexadecimal.capital", b"0X%x" % two)
        takes("octal", b"0%o\n" % two)
        stores("octal.digit", b"08\n", "EINVAL", one)
        stores("hexadecimal.none", b"0x\n", "EINVAL", one)
        page = (b"%o" % two).rjust(4096, b"0")
    stores("page", page, 4096, two)
    stores("more_than_a_page", page + b"junk", 4096, two)


def check_writes():
    first, second = shown(one), shown(two)
    store(args.number, first)
    with File(args.number, os.O_RDWR) as file:
        for name, function, arguments in (("offset.1", os.pwrite, (second, 1)), ("offset.5000", os.pwrite, (first, 5000)),
                                          ("again", os.write, (second,)), ("and_again", os.write, (first,))):
            check("write." + name, (call(function, file, *arguments), content(args.number)),
                  (len(arguments[0]), arguments[0]))
        check("write.vector", (call(os.writev, file, [second[:1], second[1:]]), content(args.number)), (len(second), second))
        ours, theirs = os.pipe()
        os.write(theirs, first)
        check("write.splice", (call(os.splice, ours, file, 99), content(args.number)), (len(first), first))
        os.close(ours)
        os.close(theirs)
        check("write.ftruncate", (call(os.ftruncate, file, 0), call(os.ftruncate, file, 5)), (None, None))
    check("write.truncate", [call(os.truncate, path, 0) for path in (args.number, args.read_only)], [None, None])
    check("write.truncate.open", opening(args.number, os.O_WRONLY | os.O_TRUNC), "ok")
    check("write.truncate.value", (content(args.number), os.stat(args.number).st_size), (first, 4096))
    shell = subprocess.run(["sh", "-c", f'echo {two} > "$1"', "sh", args.number])
    check("write.shell", (shell.returncode, content(args.number)), (0, second))
    shell = subprocess.run(["bash", "-c", 'echo junk > "$1"', "bash", args.number], capture_output=True, text=True,
                           env={**os.environ, "LC_ALL": "C"})
    check("write.shell.refused", (shell.returncode, "write error: Invalid argument" in shell.stderr), (1, True))


def check_bools():
    yes, no = (b"Y\n", b"N\n") if content(args.bool)[:1] in b"YN" else (b"1\n", b"0\n")
    for wanted, other, words in ((yes, b"0", "1 y Y on On yes 1x true enable"), (no, b"1", "0 n N off OFF no of false disable")):
        for word in words.split():
            for text in (word.encode(), word.encode() + b"\n"):
                store(args.bool, other)
                check("bool." + word, (call(store, args.bool, text), content(args.bool)), (len(text), wanted))
    store(args.bool, b"1")
    for word in ("2", "", " 1", "o", "ok", "-1", "x"):
        check("bool.invalid." + word, call(store, args.bool, word.encode() + b"\n"), "EINVAL")
    check("bool.nothing", (call(store, args.bool, b""), content(args.bool)), (0, yes))


def check_words():
    listed = content(args.words).decode().split()
    words = [word.strip("[]").encode() for word in listed]
    check("words.chosen", sum(word.startswith("[") for word in listed), 1)
    for word in words:
        check("words.each", (call(store, args.words, word + b"\n"), b"[" + word + b"]" in content(args.words).split()),
              (len(word) + 1, True))
    first = words[0]
    check("words.no_newline", call(store, args.words, first), len(first))
    for text in (first.upper(), first + b"x", first[:-1], b" " + first, first + b" ", b"[" + first + b"]",
                 first + b"\n\n", b"\n"):
        check("words.invalid", (text, call(store, args.words, text)), (text, "EINVAL"))


def check_rights():
    for name, flags in (("write", os.O_WRONLY), ("both", os.O_RDWR), ("truncate", os.O_WRONLY | os.O_TRUNC)):
        check("open.read_only." + name, opening(args.read_only, flags), "EACCES")
    check("open.read_only", opening(args.read_only, os.O_RDONLY), "ok")
    if args.write_only:
        check("open.write_only", [opening(args.write_only, flags) for flags in (os.O_RDONLY, os.O_RDWR, os.O_WRONLY)],
              ["EACCES", "EACCES", "ok"])
    check("open.direct", opening(args.number, os.O_RDONLY | os.O_DIRECT), "EINVAL")
    check("open.directory", opening(args.number, os.O_DIRECTORY), "ENOTDIR")
    check("open.exclusive", opening(args.number, CREATES | os.O_EXCL), "EEXIST")
    check("open.unnamed", opening(directory, os.O_TMPFILE | os.O_RDWR) in ("EOPNOTSUPP", "ENOTSUP"), True)

    handle, mount = (ctypes.c_uint32 * 34)(128), ctypes.c_int()
    libc = ctypes.CDLL(None, use_errno=True)
    libc.name_to_handle_at(-100, args.number.encode(), handle, ctypes.byref(mount), 0)
    check("names.handle", errno.errorcode.get(ctypes.get_errno()) in ("EOPNOTSUPP", "ENOTSUP"), True)
    new, other = directory + "/not_there", directory + "/nor_there"
    beside = args.bool if os.path.dirname(args.bool) == directory else args.read_only
    for wanted, function, arguments in (
            ("EACCES", os.open, (new, os.O_CREAT | os.O_WRONLY)), ("EACCES", os.mknod, (new, 0o644 | stat.S_IFREG)),
            ("EPERM", os.mkfifo, (new,)), ("EPERM", os.mkdir, (new,)), ("EPERM", os.symlink, ("x", new)),
            ("EPERM", os.link, (args.number, new)), ("EPERM", os.unlink, (args.number,)),
            ("EPERM", os.rename, (args.number, new)), ("EPERM", os.replace, (args.number, beside)),
            ("ENOENT", os.unlink, (new,)), ("ENOENT", os.rmdir, (new,)), ("ENOENT", os.rename, (new, other)),
            ("ENOENT", os.stat, (new,)), ("ENOTDIR", os.stat, (args.number + "/x",))):
        check(f"names.{function.__name__}.{wanted}", call(function, *arguments), wanted)
    if args.link:
        check("names.unlink.link", call(os.unlink, args.link), "EPERM")

    def mode():
        return oct(os.stat(args.number).st_mode & 0o777)

    check("set.mode", (call(os.chmod, args.number, 0o600), mode(), call(os.chmod, args.number, 0o644), mode()),
          (None, "0o600", None, "0o644"))
    owner = call(os.chown, args.number, 1, 2), os.stat(args.number).st_uid, os.stat(args.number).st_gid
    check("set.owner", owner + (call(os.chown, args.number, 0, 0),), (None, 1, 2, None))
    check("set.time", (call(os.utime, args.number, (1, 1)), os.stat(args.number).st_mtime), (None, 1.0))
    call(os.utime, args.number)
    check("access.root", (os.access(args.read_only, os.W_OK), os.access(args.number, os.R_OK)), (True, True))
    check("xattr.user", call(os.setxattr, args.number, "user.a", b"1") in ("EOPNOTSUPP", "ENOTSUP"), True)
    trusted = call(os.setxattr, args.number, "trusted.rocefs", b"1"), call(os.getxattr, args.number, "trusted.rocefs")
    call(os.removexattr, args.number, "trusted.rocefs")
    check("xattr.trusted", trusted, (None, b"1"))
    check("xattr.list", call(os.listxattr, args.number), [])


def rights_of_nobody():
    new = directory + "/not_there"
    for name, flags, path, wanted in (("read", os.O_RDONLY, args.number, "ok"), ("write", os.O_WRONLY, args.number, "EACCES"),
                                      ("write.read_only", os.O_WRONLY, args.read_only, "EACCES"),
                                      ("create", os.O_CREAT | os.O_WRONLY, new, "EACCES")):
        yield "nobody.open." + name, opening(path, flags), wanted
    for wanted, function, *arguments in (
            ("EPERM", os.chmod, args.number, 0o666), ("EPERM", os.chown, args.number, NOBODY, NOBODY),
            ("EPERM", os.utime, args.number, (1, 1)), ("EACCES", os.utime, args.number),
            ("EACCES", os.truncate, args.number, 0), ("EACCES", os.mkdir, new), ("EACCES", os.unlink, args.number),
            ("EACCES", os.rename, args.number, new), ("EACCES", os.symlink, "x", new),
            (False, os.access, args.number, os.W_OK)):
        yield f"nobody.{function.__name__}.{wanted}", call(function, *arguments), wanted
    if args.write_only:
        yield ("nobody.write_only", [opening(args.write_only, flags) for flags in (os.O_RDONLY, os.O_WRONLY)],
               ["EACCES", "EACCES"])


def check_tools():
    first, second = shown(one).decode().strip(), shown(two).decode().strip()
    store(args.number, shown(one))
    rows = {
        "cat": ('cat "$1"', first), "read": ('read x <"$1"; echo "$x"', first), "substitution": ('echo "$(<"$1")"', first),
        "sh": ('sh -c \'read x <"$0"; echo $x\' "$1"', first), "grep": ('grep -H . "$1"', f"{args.number}:{first}"),
        "wc": ('wc -c <"$1"', str(len(first) + 1)), "head": ('head -c 1 "$1"', first[0]), "tail": ('tail -n 1 "$1"', first),
        "cmp": ('cmp "$1" "$1" && echo same', "same"), "cp": ('cp "$1" "$3/copy"; cat "$3/copy"', first),
        "cp_a": ('mkdir "$3/a"; cp -a "$1" "$3/a"; cat "$3/a/"*', first), "dd": ('dd if="$1" bs=1 2>/dev/null', first),
        "busybox": ('! command -v busybox >/dev/null && cat "$1" || busybox cat "$1"', first),
        "python": ('python3 -c "import shutil, sys; shutil.copyfile(*sys.argv[1:])" "$1" "$3/by_python"; cat "$3/by_python"', first),
        "find": ('find "$1" -size 4096c | wc -l', "1"), "du": ('du -s "$2" | cut -f 1', "0"),
        "find_type": ('[ $(find "$2/" -maxdepth 1 -type f | wc -l) = $(ls -lA "$2" | grep -c ^-) ] && echo same', "same"),
        "tee": (f'echo {two} | tee "$1" >/dev/null; cat "$1"', second),
        "dd_to": (f'printf {one} | dd of="$1" 2>/dev/null; cat "$1"', first),
        "cp_to": (f'echo {two} >"$3/value"; cp "$3/value" "$1"; cat "$1"', second),
        "tar": ('tar cf - -C "$2" "${1##*/}" 2>/dev/null | tar xOf - | tr -d "\\0"', second),
        "sed_i": ('sed -i s/1/2/ "$1" 2>/dev/null; echo $?', "4"), "touch": ('touch "$1"; echo $?', "0"),
        "rm": ('rm -f "$1" 2>&1 | grep -c "Operation not permitted"', "1"),
    }
    with tempfile.TemporaryDirectory() as place:
        for name, (command, wanted) in rows.items():
            done = subprocess.run(["bash", "-c", command, "bash", args.number, directory, place], capture_output=True,
                                  text=True, env={**os.environ, "LC_ALL": "C"})
            check("tool." + name, done.stdout.strip(), wanted)


def check_polls():
    with File(args.number) as file:
        poll = select.poll()
        poll.register(file, READABLE | select.POLLPRI)
        check("poll.before_a_read", [events for _, events in poll.poll(0)], [READABLE | CHANGED])
        os.read(file, 99)
        check("poll.after_a_read", [events for _, events in poll.poll(0)], [READABLE])
    if args.wakes:
        check_wakes()


def check_wakes():
    libc = ctypes.CDLL(None)
    watches = []
    for path in (args.number, directory):
        watches.append(libc.inotify_init1(os.O_NONBLOCK))
        libc.inotify_add_watch(watches[-1], path.encode(), 2)  # IN_MODIFY
    with File(args.number) as file:
        os.read(file, 999)
        poll = select.poll()
        poll.register(file, select.POLLPRI)
        epoll = select.epoll()
        epoll.register(file, select.EPOLLPRI)
        check("poll.quiet", poll.poll(0), [])
        # The first may store what is there, which need not wake.
        asleep = 'until grep -q "^State:.S" /proc/$PPID/status; do :; done'  # in poll(2)
        writer = subprocess.Popen(["sh", "-c", f'{asleep}; for v in {two} {one} {two}; do echo $v >"$1"; done', "sh", args.number])
        check("poll.wakes", [events for _, events in poll.poll(10000)], [CHANGED])
        writer.wait()
        check("poll.epoll", [events & CHANGED for _, events in epoll.poll(0)], [CHANGED])
        check("poll.select", len(select.select([], [], [file], 0)[2]), 1)
        check("poll.stays", [events for _, events in poll.poll(0)], [CHANGED])
        os.pread(file, 999, 0)
        check("poll.read_again", poll.poll(0), [])
    for name, watch, wanted in (("file", watches[0], b""), ("directory", watches[1], os.path.basename(args.number).encode())):
        told = select.poll()
        told.register(watch, READABLE)
        told.poll(10000)
        events = call(os.read, watch, 4096)
        check("inotify." + name, (len(events) >= 16, isinstance(events, bytes) and wanted in events), (True, True))
        os.close(watch)


def main():
    kept = [(path, content(path)) for path in (args.number, args.bool)]
    if args.words:
        chosen = [word for word in content(args.words).split() if word.startswith(b"[")]
        kept.append((args.words, chosen[0].strip(b"[]")))
    sections = [check_what_stat_says, check_directories, check_reads, check_texts_of_numbers, check_writes, check_bools]
    sections += [check_words] if args.words else []
    sections += [check_rights] + ([lambda: as_nobody(rights_of_nobody)] if os.getuid() == 0 else [])
    sections += [check_tools, check_polls]
    try:
        for section in sections:
            try:
                section()
            except Exception as error:
                line = sys.exc_info()[2].tb_next
                says(False, section.__name__, f"{error!r} in line {line.tb_lineno if line else 0}", "no exception")
    finally:
        for path, value in kept:
            call(store, path, value)
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    sys.exit(counts["differ"] > 0)


main()
