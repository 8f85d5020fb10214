# mango-ctl rdma pcc top on a terminal of its own: it draws, and SIGINT leaves the screen as it was.
import fcntl
import os
import pty
import signal
import struct
import sys
import termios

program, tree = sys.argv[1:3]
child, terminal = pty.fork()
if child == 0:
    os.execv(program, [program, "--mount", tree, "rdma", "pcc", "top", "mb_0", "--interval", "60"])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 3, 40, 0, 0))
seen = b""


def read():
    global seen
    try:
        part = os.read(terminal, 4096)
    except OSError:  # the other end has closed
        part = b""
    seen += part
    return part


while b"\x1b[J" not in seen:
    assert read(), seen
os.kill(child, signal.SIGINT)
while read():
    pass
_, status = os.waitpid(child, 0)
assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0, status
assert seen.startswith(b"\x1b[?1049h\x1b[?25l"), seen
assert seen.endswith(b"\x1b[?25h\x1b[?1049l"), seen
assert b"mb_0: PCC active" in seen, seen
