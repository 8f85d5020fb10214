# hostile_maker.py MOUNT HOST INTERFACE PROGRAM WHICH: makes the one interface of a host by the protocol of
# rdma/uapi/host.h, where PROGRAM lies over id(1). WHICH says whose namespaces it hands over: `own`, its own;
# `mixed`, its own and the machine's user namespace; `machine`, the machine's, but for the network.
# `stopped`: becomes the maker, says its pid and goes no further.
import array, ctypes, fcntl, os, socket, struct, sys

mount, host, interface, program, which = sys.argv[1:]
REQUEST = 248  # octets of a rocefs_request
OPEN, ENTER, PLUG, WATCH, PARK, NAMESPACE, STARTED, MADE = 128, 1, 4, 5, 6, 7, 8, 9
NEW_USER, NEW_MNT, NEW_UTS, NEW_NET = 0x10000000, 0x20000, 0x4000000, 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def check(status):
    if status != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
door.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
door.connect(mount + "/kernel/debug/rocefs/uapi")
_, attached, _, _ = door.recvmsg(8, 4096)
for level, kind, data in attached:
    if kind == socket.SCM_RIGHTS:
        own = socket.socket(fileno=array.array("i", data[:4])[0])
own.send(struct.pack("I", OPEN).ljust(REQUEST, b"\0"))
own.recv(65536)


def ask(op, number=0, descriptor=None):
    request = struct.pack("II64s", op, number, host.encode())
    passed = [] if descriptor is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))]
    own.sendmsg([request], passed)
    answer = own.recv(4096)
    if not answer:
        sys.exit("the engine hangs up")
    error, = struct.unpack_from("i", answer)
    if error:
        sys.exit(f"{op}: {os.strerror(error)}: {answer[12:].split(bytes(1))[0].decode()}")


def namespaces():
    return [os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in ("user", "mnt", "uts", "net")]


machine = namespaces()
uid, gid = os.getuid(), os.getgid()
check(libc.unshare(NEW_USER | NEW_MNT | NEW_UTS | NEW_NET))
for name, text in ("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1"):
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)
check(libc.mount(None, b"/", None, 0x44000, None))  # MS_REC | MS_PRIVATE
check(libc.mount(program.encode(), b"/usr/bin/id", None, 0x1000, None))  # MS_BIND
ask(ENTER)
if which == "stopped":
    print(os.getpid(), flush=True)
    os.kill(os.getpid(), 19)
tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH22x", interface.encode(), 0x5002))  # a TAP with IFF_VNET_HDR
ask(PLUG, 0, tap)
sockets = [socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) for _ in range(3)]
ask(WATCH, 0, sockets[0].fileno())
ask(PARK, 0, sockets[1].fileno())
ask(PARK, 1, sockets[2].fileno())
given = namespaces()
if which != "own":
    given[0] = machine[0]
if which == "machine":
    given[1:3] = machine[1:3]
for number, space in enumerate(given):
    ask(NAMESPACE, number, space)
ask(STARTED)
ask(MADE)
