"""Watchdog of a chaos run: each actor notes its current call in shared memory; the watchdog names a call
that does not return, and shows where in the kernel the caller and the daemon wait."""
import mmap
import os
import struct
import time

SLOT = 512


class Board:
    """One slot for each actor: when its call began (0: none), how many it has made, and what it is."""

    def __init__(self, count):
        self.memory = mmap.mmap(-1, SLOT * (count + 1))

    def enter(self, slot, what):
        text = what.encode(errors="replace")[: SLOT - 17]
        at = slot * SLOT
        self.memory[at + 16 : at + 16 + len(text) + 1] = text + b"\0"
        self.memory[at : at + 8] = struct.pack("d", time.monotonic())

    def leave(self, slot):
        at = slot * SLOT
        (calls,) = struct.unpack_from("Q", self.memory, at + 8)
        self.memory[at : at + 16] = struct.pack("dQ", 0.0, calls + 1)

    def read(self, slot):
        began, calls = struct.unpack_from("dQ", self.memory, slot * SLOT)
        text = self.memory[slot * SLOT + 16 : (slot + 1) * SLOT].split(b"\0")[0]
        return began, calls, text.decode(errors="replace")


def text_of(path):
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError as error:
        return f"({error.strerror})"


def children(pid):
    found = []
    for task in tasks(pid):
        found += [int(child) for child in text_of(f"/proc/{pid}/task/{task}/children").split() if child.isdigit()]
    return found


def tasks(pid):
    try:
        return [int(task) for task in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def descendants(pid):
    found = []
    for child in children(pid):
        found += [child] + descendants(child)
    return found


def where(pid):
    """A line for each thread: its state, where it waits in the kernel, and its stack there."""
    lines = []
    for task in tasks(pid):
        at = f"/proc/{pid}/task/{task}"
        state = text_of(f"{at}/stat").rpartition(")")[2].split()[:1]
        stack = [line.split("] ")[-1].split("+")[0] for line in text_of(f"{at}/stack").splitlines()[:8]]
        lines.append(f"    {pid}/{task} {text_of(at + '/comm')} {' '.join(state)} {text_of(at + '/wchan')}: {' '.join(stack)}")
    return lines


def picture(title, pids):
    lines = [f"  {title}:"]
    for pid in pids:
        lines += where(pid)
    return "\n".join(lines)
