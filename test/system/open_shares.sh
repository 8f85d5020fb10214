#!/bin/bash
# One user opens files and directories, and keeps texts, until refused: it gets its share, others open and
# list as before, a successor counts what was granted, and closed files free their places.
. "$(dirname "$0")/lib/common.bash"
needs_root "only root's daemon serves other users"
mounted -o allow_other
line() { sed -n "s/^$1: //p" <<<"$said"; }  # of the openers

test_case "an empty file that is read twice uses no memory"
exec 5<"$debug/inject/list" 6<"$debug/inject/list"
expect "" "$(cat <&5 && cat <&6)" "an empty list"
exec 5<&- 6<&-

test_case "one user opens files until refused, and others open as before"
said=$(timeout -s KILL 400 python3 - "$debug" "$(worker_pid)" <<'OPENERS'
import errno, os, resource, signal, sys, time

EACH = min(1000, resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 20)
resource.setrlimit(resource.RLIMIT_NOFILE, (EACH + 20, EACH + 20))

def opener(user, count, open_one, ready, go):
    """Opens so many, tells how many it got and the errno that ended it, and keeps them until `go` is closed."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    got = code = 0
    while code == 0 and got < count:
        try:
            open_one()
            got += 1
        except OSError as error:
            code = error.errno
    os.write(ready, b"%8d%8d" % (got, code))
    os.read(go, 1)

held = []

def opened(user, count, open_one):
    """How many the user gets, with as many processes as it takes, and what ends them."""
    ready, theirs = os.pipe()
    mine, go = os.pipe()
    held.append(go)
    shares = [min(EACH, count - at) for at in range(0, count, EACH)]
    for share in shares:
        if os.fork() == 0:
            for each in held:
                os.close(each)
            try:
                opener(user, share, open_one, theirs, mine)
            except BaseException as error:
                print(f"user {user}: {error!r}", flush=True)
            os._exit(0)
    os.close(theirs)
    os.close(mine)
    told = [os.read(ready, 16) for _ in shares]
    os.close(ready)
    codes = {int(each[8:]) for each in told} - {0}
    return sum(int(each[:8]) for each in told), *(errno.errorcode[code] for code in codes)

def show(what, *which):
    print(what, *opened(*which), flush=True)

def end():
    """Of all openers."""
    while held:
        os.close(held.pop())
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass

def show_again(what, user, count, open_one):
    """Once the mount has heard of all that was closed: the kernel tells it later."""
    end()
    last = time.monotonic() + 60
    while (got := opened(user, count, open_one)) != (count,) and time.monotonic() < last:
        end()
    print(what, *got, flush=True)
    end()

def text():
    os.read(os.open("reference", os.O_RDONLY), 1)

os.chdir(sys.argv[1])  # others may not look for it
for what, open_one in (("files", lambda: os.open("seed", os.O_RDONLY)),
                       ("directories", lambda: os.open(".", os.O_RDONLY | os.O_DIRECTORY))):
    show(f"{what}, one user:", 65534, 31000, open_one)
    show(f"{what}, another one:", 65533, 100, open_one)
    show(f"{what}, root:", 0, 100, open_one)
    if what == "files":
        os.kill(int(sys.argv[2]), signal.SIGKILL)
        show("after a takeover:", 65534, 100, open_one)
        show("after it, root:", 0, 100, open_one)
    show_again(f"{what}, again:", 65534, 100, open_one)
with open("reference", "rb") as reference:
    size = len(reference.read())
fit = ((224 << 20) // size + 1) // 2  # with one more it has more than what is left for the others
show("texts, one user:", 65534, fit + 10, text)
show("texts, another one:", 65533, 20, text)
show_again("texts, again:", 65534, 20, text)
print("that fit:", fit)
OPENERS
) || fail "the openers: $said"

test_case "each user has a share of open files and directories"
# Half of 65,536 less the 4,096 that are kept for root: as many remain for the next user.
for what in files directories; do
  expect "30720 ENFILE" "$(line "$what, one user")" "$what, its share"
  expect "100" "$(line "$what, another one")" "$what, who comes next"
  expect "100" "$(line "$what, root")" "$what, root"
  expect "100" "$(line "$what, again")" "$what, once they are closed"
done

test_case "a successor counts what was granted before"
expect "0 ENFILE" "$(line "after a takeover")" "its share, with another worker"
expect "100" "$(line "after it, root")" "root, with another worker"

test_case "each user has a share of the memory for texts"
# 32 of 256 MiB are kept for root.
expect "$(line "that fit") ENOMEM" "$(line "texts, one user")" "texts, its share"
expect "20" "$(line "texts, another one")" "texts, who comes next"
expect "20" "$(line "texts, again")" "texts, once they are closed"
