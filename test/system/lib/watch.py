"""watch.py FILE UNTIL: prints what FILE says, and what it says each time when poll(2) tells that it has changed
(POLLPRI), until that is UNTIL. It never looks by itself."""
import os
import select
import sys

file = os.open(sys.argv[1], os.O_RDONLY)
poll = select.poll()
poll.register(file, select.POLLPRI)
while True:
    text = os.pread(file, 4096, 0).decode().strip()
    print(text, flush=True)
    if text == sys.argv[2]:
        break
    if not poll.poll(120000):
        sys.exit(f"{sys.argv[1]}: still '{text}'?")
