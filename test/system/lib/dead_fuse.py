# dead_fuse.py DIR: mounts a FUSE file system there that is not rocefs, and ends: it is dead.
import ctypes
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fd},rootmode=40000,user_id=0,group_id=0"
if libc.mount(b"other", sys.argv[1].encode(), b"fuse.other", 0, options.encode()) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
