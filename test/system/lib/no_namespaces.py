# no_namespaces.py COMMAND…: runs it where unshare(2) makes no mount namespace, as in a container that
# forbids it; asked with CLONE_NEWNS it fails with EPERM.
import ctypes, os, platform, struct, sys

NUMBER = {"x86_64": 272, "aarch64": 97}[platform.machine()]
CLONE_NEWNS = 0x20000
LOAD, EQUAL, ANY_OF, RETURN = 0x20, 0x15, 0x45, 0x06
code = [
    (LOAD, 0, 0, 0),
    (EQUAL, 0, 3, NUMBER),
    (LOAD, 0, 0, 16),
    (ANY_OF, 0, 1, CLONE_NEWNS),
    (RETURN, 0, 0, 0x00050001),
    (RETURN, 0, 0, 0x7FFF0000),
]
filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(filters))
libc = ctypes.CDLL(None, use_errno=True)
if os.geteuid() != 0:
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
if libc.prctl(22, 2, program) != 0:  # PR_SET_SECCOMP
    sys.exit(os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[1], sys.argv[1:])
