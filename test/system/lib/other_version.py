# other_version.py SOCKET VERSION: introduces itself as a client of that version of rdma/uapi, whatever the
# greeting says; prints the answer's errno and reason.
import array, errno, re, socket, struct, sys

top = __file__.rsplit("/test/", 1)[0]
magic = int(re.search(r"ROCEFS_UAPI_MAGIC = (0x[0-9a-f]+)", open(f"{top}/rdma/uapi/uapi.h").read()).group(1), 16)
door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
door.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
door.connect(sys.argv[1])
_, attached, _, _ = door.recvmsg(8, 4096)
for level, kind, data in attached:
    if kind == socket.SCM_RIGHTS:
        own = socket.socket(fileno=array.array("i", data[:4])[0])
own.settimeout(30)
own.send(struct.pack("IIII", 0, 0, magic, int(sys.argv[2])))
answer = own.recv(65536)
print(errno.errorcode[struct.unpack("i", answer[:4])[0]], answer[8:].split(b"\0")[0].decode())
assert own.recv(1) == b"", "the connection goes on"
