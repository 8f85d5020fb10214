# Runs a command under a seccomp filter:
#   seccomp.py refuse NAME=ERRNO[,NAME=ERRNO…] COMMAND…
#   seccomp.py profile FILE CAPABILITY[,CAPABILITY…] COMMAND…     as a container engine would
#   seccomp.py strict FILE CAPABILITY[,CAPABILITY…] COMMAND…      what is not in it kills
#   seccomp.py check FILE
# A profile is in Docker's format, and is applied for a container that has these capabilities ("-":
# none). Numbers of system calls come from the C compiler's headers. Status 77: not here.
import ctypes
import errno
import json
import os
import platform
import struct
import subprocess
import sys

ARCHITECTURES = {"x86_64": (0xC000003E, "SCMP_ARCH_X86_64"), "aarch64": (0xC00000B7, "SCMP_ARCH_AARCH64")}
ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
ACTIONS = ("SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO")
COMPARISONS = ("SCMP_CMP_EQ", "SCMP_CMP_NE", "SCMP_CMP_MASKED_EQ")


def numbers():
    """The system calls of this machine, by name."""
    said = subprocess.run(
        [os.environ.get("CC", "cc"), "-E", "-dM", "-"], input=b"#include <sys/syscall.h>\n", stdout=subprocess.PIPE, check=True
    ).stdout.decode()
    words = [line.split() for line in said.splitlines()]
    return {w[1][5:]: int(w[2]) for w in words if len(w) == 3 and w[1].startswith("__NR_") and w[2].isdigit()}


def instruction(code, k, true=0, false=0):
    return struct.pack("HBBI", code, true, false, k)


LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
EQUAL, AND, RETURN = 0x15, 0x54, 0x06


def condition(argument):
    """Instructions that go on where it holds, and jump to a place after the rule where it does not:
    (instructions before the jump, k, whether equal is what is wanted)."""
    index, value = argument["index"], argument["value"]
    second, op = argument.get("valueTwo", 0), argument["op"]
    mask, wanted = (value, second) if op == "SCMP_CMP_MASKED_EQ" else (2**64 - 1, value)
    for half, shift in ((0, 0), (4, 32)):  # little-endian
        yield [
            instruction(LOAD, 16 + 8 * index + half),
            instruction(AND, mask >> shift & 0xFFFFFFFF),
        ], wanted >> shift & 0xFFFFFFFF


def rule(number, arguments, action):
    """Returns `action` for this call, if each of its arguments is as it should be."""
    body = [instruction(RETURN, action)]
    for argument in reversed(arguments):
        if argument["op"] == "SCMP_CMP_NE":  # differs in one half: go on
            (low, low_wanted), (high, high_wanted) = condition(argument)
            body = [
                *low, instruction(EQUAL, low_wanted, 0, len(high) + 1),
                *high, instruction(EQUAL, high_wanted, len(body), 0),
            ] + body
            continue
        for before, wanted in reversed(list(condition(argument))):
            body = [*before, instruction(EQUAL, wanted, 0, len(body))] + body
    return [instruction(LOAD, 0), instruction(EQUAL, number, 0, len(body))] + body


def applies(entry, capabilities):
    held = set(capabilities)
    return set(entry.get("includes", {}).get("caps", [])) <= held and not set(entry.get("excludes", {}).get("caps", [])) & held


def action_of(entry, default_errno):
    if entry["action"] == "SCMP_ACT_ALLOW":
        return ALLOW
    return ERRNO | entry.get("errnoRet", default_errno)


def profile_rules(profile, capabilities, names):
    default_errno = profile.get("defaultErrnoRet", errno.EPERM)
    for entry in profile["syscalls"]:
        if not applies(entry, capabilities):
            continue
        for name in entry["names"]:
            if name in names:
                yield names[name], entry.get("args", []), action_of(entry, default_errno)


def check(profile, names):
    """What is wrong with a profile: unknown words, which an engine would refuse or pass over."""
    def known(where, keys, allowed):
        return [f"{where}: '{key}' is no key of it" for key in keys if key not in allowed]
    wrong = known("the profile", profile, ("defaultAction", "defaultErrnoRet", "archMap", "syscalls"))
    if profile.get("defaultAction") != "SCMP_ACT_ERRNO":
        wrong.append("what is not named is not refused")
    architectures = {m.get("architecture") for m in profile.get("archMap", [])}
    for wanted in ("SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"):
        if wanted not in architectures:
            wrong.append(f"no {wanted}")
    seen = {}
    for entry in profile["syscalls"]:
        where = entry.get("comment", str(entry.get("names", ["?"])[0]))
        wrong += known(where, entry, ("names", "action", "args", "includes", "excludes", "errnoRet", "comment"))
        if entry.get("action") not in ACTIONS:
            wrong.append(f"{where}: action {entry.get('action')}")
        for group in ("includes", "excludes"):
            wrong += known(f"{where}: {group}", entry.get(group, {}), ("caps",))
        for argument in entry.get("args", []):
            wrong += known(f"{where}: args", argument, ("index", "value", "valueTwo", "op"))
            if argument.get("op") not in COMPARISONS:
                wrong.append(f"{where}: comparison {argument.get('op')}")
        for name in entry["names"]:
            if not name.isidentifier() or name != name.lower():
                wrong.append(f"{where}: {name}")
            key = (name, json.dumps([entry.get(k) for k in ("args", "includes", "excludes")]))
            if key in seen:
                wrong.append(f"{where}: {name} is also in {seen[key]}")
            seen[key] = where
    listed = {name for entry in profile["syscalls"] for name in entry["names"]}
    if platform.machine() == "x86_64":  # others lack the oldest
        wrong += [f"{name}: no such system call" for name in sorted(listed - set(names) - OTHERS)]
    return wrong


# Newer than the headers of Debian 12; engines pass over what their library does not know.
OTHERS = set("cachestat fchmodat2 futex_requeue futex_wait futex_wake listmount mseal statmount".split())


def load(rules, default):
    arch = ARCHITECTURES.get(platform.machine())
    if not arch:
        print(f"no filter for {platform.machine()}")
        sys.exit(77)
    program = [instruction(LOAD, 4), instruction(EQUAL, arch[0], 1, 0), instruction(RETURN, KILL)]
    for number, arguments, action in rules:
        program += rule(number, arguments, action)
    program.append(instruction(RETURN, default))
    if len(program) > 4096:
        sys.exit(f"{len(program)} instructions are too many")
    text = b"".join(program)
    buffer = ctypes.create_string_buffer(text)
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_seccomp, filter_mode = 38, 22, 2
    if os.geteuid() != 0 and libc.prctl(no_new_privileges, 1, 0, 0, 0) != 0:
        sys.exit("no_new_privs: " + os.strerror(ctypes.get_errno()))
    if libc.prctl(set_seccomp, filter_mode, header, 0, 0) != 0:
        print("no seccomp filter here: " + os.strerror(ctypes.get_errno()))
        sys.exit(77)


def main():
    mode, what = sys.argv[1:3]
    names = numbers()
    if mode == "refuse":
        pairs = [pair.split("=") for pair in what.split(",")]
        load([(names[name], [], ERRNO | getattr(errno, code)) for name, code in pairs], ALLOW)
        command = sys.argv[3:]
    elif mode in ("profile", "strict"):
        with open(what) as file:
            profile = json.load(file)
        capabilities = [] if sys.argv[3] == "-" else sys.argv[3].split(",")
        default = ERRNO | profile.get("defaultErrnoRet", errno.EPERM) if mode == "profile" else KILL
        load(list(profile_rules(profile, capabilities, names)), default)
        command = sys.argv[4:]
    elif mode == "check":
        with open(what) as file:
            wrong = check(json.load(file), names)
        print("\n".join(wrong))
        sys.exit(1 if wrong else 0)
    else:
        sys.exit(f"{mode}: refuse, profile, strict or check is wanted")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
