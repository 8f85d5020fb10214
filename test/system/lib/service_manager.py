# Stands in for a service manager: service_manager.py SOCKET LOG. Listens at SOCKET ("@name" is
# abstract) and appends to LOG what it is told: a line for each datagram, its lines joined by |, after
# the pid of its sender. Ends when it is killed.
import os
import socket
import struct
import sys

where, log = sys.argv[1:]
listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
listener.bind("\0" + where[1:] if where[0] == "@" else where)
out = open(log, "a", buffering=1)
print("listening", flush=True)
while True:
    text, ancillary, _, _ = listener.recvmsg(8192, socket.CMSG_SPACE(12))
    pid = struct.unpack("3i", ancillary[0][2])[0]
    out.write(f"{pid} {text.decode().replace(chr(10), '|')}\n")
