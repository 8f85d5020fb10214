"""The hostile actors: programs of another user that send invalid requests to the mount's socket, and
strangers on the wire."""
import array
import ctypes
import encodings.idna  # nobody could not load it later
import mmap
import os
import re
import socket
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "../../rdma/uapi/uapi.h")) as uapi:
    VERSION = int(re.search(r"ROCEFS_UAPI_VERSION = (\d+)", uapi.read()).group(1))
MAGIC, REQUEST, OPERATIONS = 0x52434653, 248, 27
READABLE = ctypes.c_uint32(MAGIC)  # read by the daemon to check that it may read this memory
LINE = "flow 1 name={name} op={op} size={size} count={count} window=64 timeout=14 retry=7 verify=1 file={file} seed=1 mtu={mtu} address={address} key=0 bytes={bytes} qps={qps}"


def connect(mnt):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    client.settimeout(2)
    client.connect(mnt + "/kernel/debug/rocefs/uapi")
    # The daemon sends a socket that replaces this one, together with its credentials.
    _, ancillary, _, _ = client.recvmsg(64, 256)
    fds = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(data[: len(data) // fds.itemsize * fds.itemsize])
    client.close()
    if not fds:
        raise ConnectionRefusedError
    instead = socket.socket(fileno=fds[0])
    for fd in fds[1:]:
        os.close(fd)
    instead.settimeout(2)
    return instead


def lingering():
    """A TCP socket whose close waits ten seconds for a peer that does not read."""
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 10))
    peer, _ = server.accept()
    client.setblocking(False)
    try:
        while True:
            client.send(b"x" * 65536)
    except BlockingIOError:
        pass
    server.close()
    return client, peer


def some_descriptors(random, kept):
    fds = []
    for _ in range(random.choice([0, 0, 1, 1, 2, 5])):
        kind = random.choice([0, 1, 2, 3] * 5 + [4])
        if kind == 0:
            fds.append(os.memfd_create("chaos"))
        elif kind == 1:
            fds += os.pipe()
        elif kind == 2:
            pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            fds.append(pair[0].detach())
            kept.append(pair[1])
        elif kind == 3:
            fds.append(os.open("/dev/null", os.O_RDWR))
        else:
            mine, peer = lingering()
            fds.append(mine.detach())
            kept.append(peer)
    return fds


def scribble(random, fds):
    """Overwrites memory shared with the daemon at random, and closes it."""
    for fd in fds:
        try:
            with mmap.mmap(fd, 0) as memory:
                for _ in range(random.randrange(200)):
                    at = random.choice([random.randrange(4096), random.randrange(len(memory))]) % len(memory)
                    piece = random.choice([b"\0", b"\1", b"\xff" * 4, random.randbytes(8)])[: len(memory) - at]
                    memory[at : at + len(piece)] = piece
        except (OSError, ValueError):
            pass  # an eventfd, or read-only memory
        finally:
            os.close(fd)


def hostile(self):
    random = self.random
    while True:
        kept = []
        def session():
            client = connect(self.mnt)
            channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            device = random.choice([b"mb_0", b"mb_1"] * 4 + [b"\xff" * 64, b"none"])
            probe = random.choice([ctypes.addressof(READABLE)] * 9 + [0, 1, 1 << 63])
            hello = struct.pack("<II64s16sQ", MAGIC, VERSION, device, b"chaos", probe)
            if random.random() < 0.9:
                first = struct.pack("<II", 0, 0) + hello
                socket.send_fds(client, [first.ljust(REQUEST, b"\0")], [theirs.fileno()])
                scribble(random, socket.recv_fds(client, 4096, 8)[1])
            for _ in range(random.randrange(60)):
                body = struct.pack("<II", random.choice([random.randrange(1, OPERATIONS)] * 20 + [0, random.randrange(128), 1 << 31]), 0)
                body += b"".join(struct.pack("<I", random.choice([0, 1, 2, 4, 16, 4096, 1 << 20, 0xffffffff, random.getrandbits(32)])) for _ in range(60))
                fds = some_descriptors(random, kept) if random.random() < 0.1 else []
                try:
                    client.sendmsg([body[: random.choice([REQUEST] * 40 + [8, 100, 4])]],
                                   [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])
                finally:
                    for fd in fds:
                        os.close(fd)
                scribble(random, socket.recv_fds(client, 4096, 8)[1])
            channel.close()
            theirs.close()
            client.close()
        self.call("a hostile client", session)
        for each in kept:
            each.close()
        self.pause(0.05)


def windows(self):
    """Claims the windows of a device without the right to set them."""
    while True:
        def claim():
            client = connect(self.mnt)
            body = struct.pack("<IIII64s16s", 64, 0, MAGIC, VERSION, b"mb_0", b"chaos")
            client.send(body.ljust(REQUEST, b"\0"))
            client.recv(4096)
            client.close()
        self.call("a claim of windows", claim)
        self.pause(0.3)


def offer(random):
    values = {
        "name": random.choice(["k", "a b", "x" * 300, "../x", f"n{random.randrange(100)}"]),
        "op": random.choice(["ud", "uc", "write", "send", "read", "atomic", "none"]),
        "size": random.choice([0, 1, 4096, 65536, 1 << 30, 1 << 40]), "count": random.choice([0, 1, 1000, 1 << 40]),
        "file": random.choice([0, 1]), "mtu": random.choice([0, 256, 300, 1024, 4096, 1 << 32]),
        "address": random.choice([0, 4096, 1 << 63]), "bytes": random.choice([0, 1, 1 << 30, 1 << 62]),
        "qps": ",".join(f"{random.choice([0, 1, 17, 16777215])}:{random.getrandbits(24)}" for _ in range(random.choice([1, 1, 4, 300]))),
    }
    return LINE.format(**values)


def announcers(self):
    random = self.random
    while True:
        def talk():
            with socket.create_connection(("10.9.0.1", 18516), timeout=2) as peer:
                for _ in range(random.randrange(12)):
                    line = offer(random) if random.random() < 0.8 else random.choice(["done", "ready", "arrived", "fail x", "\0", "x" * 200000])
                    if random.random() < 0.1:
                        line = line[: random.randrange(len(line) + 1)]
                    peer.sendall(line.encode() + random.choice([b"\n", b"\n", b"\n", b"", b"\r\n"]))
                    peer.settimeout(0.2)
                    try:
                        peer.recv(65536)
                    except TimeoutError:
                        pass
        self.call("a stranger at the exchange", talk)
        self.pause(0.1)


def packets(self):
    """Sends almost valid RoCE packets to port 4791."""
    random = self.random
    wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    while True:
        opcode = random.choice([0, 4, 6, 10, 12, 16, 17, 20, 100, 129, 255, random.randrange(256)])
        bth = struct.pack(">BBHII", opcode, random.randrange(256), random.choice([0xffff, 0]), random.choice([1, 17, 18, 19, random.getrandbits(24)]), random.getrandbits(32))
        body = bth + random.randbytes(random.choice([0, 4, 16, 28, 256, 1024, 4096]))
        self.call("a packet of a stranger", wire.sendto, body, ("10.9.0.1", 4791))
        self.pause(0.002)


OF_ANOTHER_USER = {"hostile": hostile, "hostile2": hostile, "windows": windows}
ON_THE_WIRE = {"announcers": announcers, "announcers2": announcers, "packets": packets}
