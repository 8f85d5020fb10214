#!/bin/bash
# One user's 24 clients request 1,020 channels each, more than there are descriptors: they get their user's
# share, the next one gets EMFILE, and others keep the mount and its socket.
. "$(dirname "$0")/lib/common.bash"
needs_root "only root's daemon serves other users"
[ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -ge 20000 ] || skip "the limit of open files is below 20000"
(ulimit -n 20000 && mounted -o allow_other)

test_case "each user has a share of channels, and the socket stays"
said=$(timeout -s KILL 120 python3 - "$mnt" "$(dirname "$0")/../chaos" <<'CLIENTS'
import ctypes, errno, os, socket, struct, sys
sys.path.insert(0, sys.argv[2])
from strangers import MAGIC, REQUEST, VERSION, connect

HELLO, CREATE_CHANNEL, CHANNELS = 0, 17, 1020

def ask(client, op, body):
    """With a socket of which the other end is kept; the errno of the answer."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    socket.send_fds(client, [(struct.pack("<II", op, 0) + body).ljust(REQUEST, b"\0")], [theirs.fileno()])
    theirs.close()
    answer, fds, _, _ = socket.recv_fds(client, 4096, 8)
    return struct.unpack_from("<i", answer)[0], [mine] + fds

def open_channels(user, ready, go):
    """How many channels the client gets, and why no more; it keeps them until `go` is closed."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE, as a login has it
    client = connect(".")
    client.settimeout(60)
    probe = ctypes.create_string_buffer(struct.pack("<Q", MAGIC))
    code, kept = ask(client, HELLO, struct.pack("<II64s16sQ", MAGIC, VERSION, b"mb_0", b"greedy", ctypes.addressof(probe)))
    count = 0
    while code == 0 and count < CHANNELS:
        code, ends = ask(client, CREATE_CHANNEL, struct.pack("<Q", 1 + count))
        kept.append(ends)
        count += code == 0
    os.write(ready, struct.pack("ii", count, code))
    os.read(go, 1)
    os._exit(0)

def clients(user, count):
    """What so many clients of a user get, and what ends them."""
    ready, theirs = os.pipe()
    held, go = os.pipe()
    for _ in range(count):
        if os.fork() == 0:
            os.close(go)
            try:
                open_channels(user, theirs, held)
            except BaseException as error:
                print(f"user {user}: {error!r}", flush=True)
                os._exit(1)
    os.close(theirs)
    told = [struct.unpack("ii", os.read(ready, 8)) for _ in range(count)]
    return sum(each[0] for each in told), {errno.errorcode.get(each[1], each[1]) for each in told}, go

def show(what, got):
    print(what, got[0], *sorted(str(name) for name in got[1]), flush=True)
    return got

os.chdir(sys.argv[1])  # others may not look for it
first = show("one user:", clients(65534, 24))
show("another one:", clients(65533, 1))
show("root:", clients(0, 1))
os.close(first[2])
CLIENTS
) || fail "the clients: $said"
# A user's share of 8,614 descriptors, less 8 of each client's own.
expect "one user: 8422 EMFILE" "$(head -n 1 <<<"$said")" "its share"
expect "another one: 1020 0" "$(sed -n 2p <<<"$said")" "who comes next"
expect "root: 1020 0" "$(sed -n 3p <<<"$said")" "root"
grep -q "of user 65534, is refused: a channel: the user has used up the share of open files" "$debug/dmesg" || fail "no word in dmesg"
# Others can still use the mount and its socket afterwards.
expect ok "$(timeout 20 python3 "$(dirname "$0")/lib/seqpacket.py" connect "$debug/uapi")" "the socket"
mountpoint -q "$mnt" && [ -n "$(worker_pid)" ] || fail "the mount: $(cat "$debug/dmesg")"
