# seqpacket.py connect|bind PATH: says `ok`, or the error's name.
import errno, socket, sys

end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
try:
    getattr(end, sys.argv[1])(sys.argv[2])
    print("ok")
except OSError as error:
    print(errno.errorcode[error.errno])
