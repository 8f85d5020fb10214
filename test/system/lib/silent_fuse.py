# silent_fuse.py DIR [TYPE] [OPERATION]: a FUSE file system of that type (fuse.silent) that takes every request
# and answers none but the first, as a server that hangs. With OPERATION it has files that can be made, and falls
# silent later: at the first write, or when a file without room (no write succeeds) is closed: full. Says
# `mounted`, and `asked` of each that it does not answer; ends, and the file system with it, when it is killed.
import ctypes
import errno
import os
import struct
import sys

LOOKUP, FORGET, BATCH_FORGET, GETATTR, SETATTR, WRITE, FLUSH, INIT, CREATE = 1, 2, 42, 3, 4, 16, 25, 26, 35
FILE = 2
kind = sys.argv[2] if len(sys.argv) > 2 else "fuse.silent"
last = {"write": WRITE, "full": FLUSH, None: 0}[sys.argv[3] if len(sys.argv) > 3 else None]
silent = last == 0


def attributes(inode):
    mode, links = (0o40755, 2) if inode != FILE else (0o100644, 1)
    return struct.pack("=6Q10I", inode, 0, 0, 0, 0, 0, 0, 0, 0, mode, links, 0, 0, 0, 4096, 0)


def reply_to(opcode, request):
    """What answers it, or its errno."""
    if opcode == INIT:
        return struct.pack("=IIIIHHI", 7, 31, 0, 0, 0, 0, 1 << 20).ljust(64, b"\0")
    if opcode in (GETATTR, SETATTR):
        return struct.pack("=QII", 0, 0, 0) + attributes(struct.unpack_from("=Q", request, 16)[0])
    if opcode == CREATE:
        return struct.pack("=4QII", FILE, 0, 0, 0, 0, 0) + attributes(FILE) + struct.pack("=QII", 0, 0, 0)
    return {LOOKUP: errno.ENOENT, WRITE: errno.ENOSPC}.get(opcode, errno.ENOSYS)


libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other"
if libc.mount(b"silent", sys.argv[1].encode(), kind.encode(), 0, options.encode()) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print("mounted", flush=True)
while True:
    request = os.read(fd, (1 << 20) + 4096)
    _, opcode, unique = struct.unpack_from("=IIQ", request)
    silent = silent or opcode == last
    if opcode in (FORGET, BATCH_FORGET):
        continue
    if silent and opcode != INIT:
        print("asked", flush=True)
        continue
    reply = reply_to(opcode, request)
    code, octets = (-reply, b"") if isinstance(reply, int) else (0, reply)
    os.write(fd, struct.pack("=IiQ", 16 + len(octets), code, unique) + octets)
