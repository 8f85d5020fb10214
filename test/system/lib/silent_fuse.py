# silent_fuse.py DIR: mounts a FUSE file system there that says to be a rocefs, takes what it is asked and
# never answers. Says "mounted" and stays until it is killed: with it the connection ends.
import ctypes
import os
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other"
if libc.mount(b"silent", sys.argv[1].encode(), b"fuse.rocefs", 0, options.encode()) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
unique = struct.unpack_from("Q", os.read(fd, 1 << 20), 8)[0]  # FUSE_INIT
body = struct.pack("IIIIHHIIHHI", 7, 31, 0, 0, 12, 10, 1 << 17, 1, 32, 0, 0) + bytes(24)
os.write(fd, struct.pack("IiQ", 16 + len(body), 0, unique) + body)
print("mounted", flush=True)
while True:
    os.read(fd, 1 << 20)
