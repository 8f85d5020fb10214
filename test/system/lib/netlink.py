# Says what socket(AF_NETLINK, SOCK_STREAM, protocol) answers. No kernel has stream sockets there, and
# says so before it looks at the protocol: another answer comes from a filter.
import errno
import socket
import sys

try:
    socket.socket(socket.AF_NETLINK, socket.SOCK_STREAM, int(sys.argv[1]))
    print("a socket")
except OSError as error:
    print(errno.errorcode[error.errno])
