# silent_fuse.py DIR [TYPE]: a FUSE file system of that type (fuse.silent) that takes every request and answers
# none but the first, as a server that hangs. Says `mounted`, and `asked` of each; ends, and the file system with it, when it is killed.
import ctypes
import os
import struct
import sys

kind = sys.argv[2] if len(sys.argv) > 2 else "fuse.silent"
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other"
if libc.mount(b"silent", sys.argv[1].encode(), kind.encode(), 0, options.encode()) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print("mounted", flush=True)
FUSE_INIT = 26
while True:
    request = os.read(fd, 1 << 20)
    _, opcode, unique = struct.unpack_from("=IIQ", request)
    if opcode != FUSE_INIT:
        print("asked", flush=True)
    else:
        init = struct.pack("=IIIIHHI", 7, 31, 0, 0, 0, 0, 4096).ljust(64, b"\0")
        os.write(fd, struct.pack("=IiQ", 16 + len(init), 0, unique) + init)
