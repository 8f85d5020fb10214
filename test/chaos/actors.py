"""The legitimate actors: they store, read, list, start and stop, and accept every errno. A call only has
to return."""
import fcntl
import glob
import os
import select
import signal
import subprocess
import time

GARBAGE = ["", "0", "1", "-1", "x", "on", "off", "99999999999999999999", "1e9", "\0", "a" * 5000, "2.5G", "10us", "50%", "\xff", "  7 ", "%s%n"]
VALUES = {
    "loss": ["0", "0.001", "0.05", "1"], "rate": ["1G", "10G", "100G", "25G"], "delay": ["0", "1us", "200us"],
    "enable": ["0", "1"], "state": ["up", "down"], "buffer": ["100K", "12M"], "mode": ["soc", "host"],
    "log_level": ["info", "debug", "err"], "traffic_class": ["96", "global"], "node_desc": ["a", "chaos"],
}


class Actor:
    """One process. `call` notes the current call on the board; errors of the file system are valid answers."""

    def __init__(self, stage, slot, name, random):
        self.stage, self.slot, self.name, self.random = stage, slot, name, random
        self.mnt, self.debug = stage.mnt, stage.mnt + "/kernel/debug/rocefs"
        self.errors = {}

    def call(self, what, work, *arguments):
        self.stage.board.enter(self.slot, f"{self.name}: {what}")
        try:
            return work(*arguments)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            code = getattr(error, "errno", None)
            self.errors[code] = self.errors.get(code, 0) + 1
            return None
        finally:
            self.stage.board.leave(self.slot)

    def pause(self, longest):
        time.sleep(self.random.random() * longest)

    def store(self, path, text):
        def write():
            fd = os.open(path, os.O_WRONLY | os.O_TRUNC)
            try:
                return os.write(fd, text.encode("utf-8", "surrogateescape"))
            finally:
                os.close(fd)
        return self.call(f"store {text[:60]!r} {path}", write)

    def read(self, path):
        def read():
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            try:
                return os.read(fd, 1 << 16)
            finally:
                os.close(fd)
        return self.call(f"read {path}", read)

    def list(self, path):
        return self.call(f"list {path}", os.listdir, path) or []

    def run(self, command, seconds, **options):
        """A program, which dies at a random moment."""
        def work():
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, **options)
            try:
                process.wait(self.random.random() * seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.call("run " + " ".join(command), work)


def stores(self):
    kinds = ["links/*/*", "fabric/*/ecn/*", "fabric/*/pfc/*", "fabric/*/npcc/*", "fabric/*/buffer/*", "sa/*", "log_level", "uplinks/*/gso", "traffic/exchange_port"]
    files = [path for kind in kinds for path in glob.glob(f"{self.debug}/{kind}")]
    files += [path for kind in ("cfr/*", "ops/*", "sr/*", "pcc/*", "tc/1/*", "mad_sa_cc/1/*", "node_desc") for path in glob.glob(f"{self.mnt}/class/infiniband/*/{kind}")]
    files = [path for path in files if os.path.isfile(path) and os.stat(path).st_mode & 0o200]
    while True:
        path = self.random.choice(files)
        self.store(path, self.random.choice(VALUES.get(os.path.basename(path), GARBAGE) if self.random.random() < 0.6 else GARBAGE))
        if self.random.random() < 0.1:
            self.store(self.debug + "/set", f"kernel/debug/rocefs/links/mb_0-sw_0/loss={self.random.random() / 20} kernel/debug/rocefs/links/mb_1-sw_0/delay=2us")
        if self.random.random() < 0.05:
            self.store(self.debug + "/clock/at", self.random.choice(["5ms", "1s", "0"]) + " kernel/debug/rocefs/links/mb_0-sw_0/loss=0")
        self.pause(0.01)


def reads(self):
    kept = []
    while True:
        at = self.mnt
        for _ in range(12):
            names = self.list(at)
            if not names:
                break
            at += "/" + self.random.choice(names)
            if not self.call(f"stat {at}", os.path.isdir, at):
                break
        self.read(at)
        if self.random.random() < 0.1:
            fd = self.call(f"open {at}", os.open, at, os.O_RDONLY | os.O_NONBLOCK)
            if fd is not None:
                kept.append((fd, at))
        for fd, path in kept:
            self.call(f"pread {path}, kept", os.pread, fd, 4096, 0)
        if len(kept) > 20:
            fd, path = kept.pop(self.random.randrange(len(kept)))
            self.call(f"close {path}", os.close, fd)


def listings(self):
    while True:
        for path in ("traffic", "inject", "links", "fabric/sw_0/ports"):
            at = f"{self.debug}/{path}"
            self.list(at)
            if self.random.random() < 0.3:
                for name in self.list(at):
                    self.call(f"list {at}/{name}", os.listdir, f"{at}/{name}")
        self.list(f"{self.mnt}/class/infiniband/{self.random.choice(['mb_0', 'mb_1'])}/pcc/qps")


def flows(self):
    source = f"{self.stage.work}/source"
    number = 0
    while True:
        number += 1
        name = f"{self.name}{number % 40}"
        op = self.random.choice(["write", "send", "read", "atomic", "uc", "ud"])
        to = self.random.choice(["mb_1", "mb_1", "10.9.0.2", "10.9.0.77", "mb_0"])
        size = "" if op == "atomic" else "size=" + self.random.choice(["1", "4096"] if op == "ud" else ["1", "64K", "1M"])
        line = f"{name} {op} mb_0 {to} qps={self.random.randint(1, 8)} {size} count={self.random.choice([1, 100, 1000000])}"
        if self.random.random() < 0.2:
            line = f"{name} {self.random.choice(['write', 'send'])} mb_0 mb_1 file={source} out={self.stage.work}/{name}.out"
        elif self.random.random() < 0.15:
            line = f"{name} accept mb_0 out={self.stage.work}/{name}.out"
        self.store(self.debug + "/traffic/start", line)
        at = f"{self.debug}/traffic/{name}"
        self.read(at + "/state")
        self.pause(0.2)
        self.read(at + "/result")
        if self.random.random() < 0.8:
            self.store(at + "/stop", "1")
            self.store(at + "/stop", "1")


def faults(self):
    number = 0
    while True:
        number += 1
        name = f"i{number % 50}"
        link = self.random.choice(["mb_0-sw_0", "sw_0-mb_1", "sw_0-up", "mb_1-sw_0"])
        what = self.random.choice(["drop", "duplicate delay=10us", "reorder by=3", "corrupt what=icrc", "delay delay=20us", "mark-ce", "down delay=1ms"])
        kind, _, more = what.partition(" ")
        self.store(self.debug + "/inject/add", f"{name} {kind} {link} {more} p=0.01 count={self.random.choice([0, 1, 5])}")
        self.read(f"{self.debug}/inject/{name}/fired")
        self.read(self.debug + "/inject/list")
        if self.random.random() < 0.9:
            self.store(f"{self.debug}/inject/{name}/remove", "1")


def drivers(self):
    while True:
        self.pause(4)
        self.store(f"{self.mnt}/bus/pci/drivers/mango_core/unbind", "0000:ac:00.0")
        self.pause(0.3)
        self.store(f"{self.mnt}/bus/pci/drivers/mango_core/bind", "0000:ac:00.0")


def resets(self):
    while True:
        self.pause(10)
        self.store(self.debug + "/reset", "1")


def captures(self):
    while True:
        self.store(self.debug + "/pcap", self.random.choice([f"{self.stage.work}/wire.pcap", f"{self.stage.work}/wire.pcapng", "/nowhere/wire.pcap"]))
        self.pause(1)
        self.store(self.debug + "/pcap", "off")


def algorithms(self):
    at = f"{self.mnt}/class/infiniband/mb_0/pcc"
    while True:
        self.store(at + "/algo", self.random.choice(["aimd", "dcqcn", "rttvegas", "none"]))
        self.store(at + "/state", self.random.choice(["start", "stop"]))
        self.read(at + "/status")
        self.read(at + "/trace")
        if self.random.random() < 0.1:
            self.store(at + "/load", "1")
        self.pause(0.5)


def polls(self):
    while True:
        path = self.random.choice([f"{self.debug}/links/mb_0-sw_0/loss", f"{self.mnt}/class/infiniband/mb_0/pcc/state"])
        def wait():
            with open(path) as file:
                file.read()
                poll = select.poll()
                poll.register(file, select.POLLPRI)
                poll.poll(1000)
        self.call(f"poll {path}", wait)


def verbs(self):
    enter = [self.stage.rocefs, "enter", "-m", self.mnt, "--"]
    port = 20000 + self.slot * 100
    while True:
        port += 1
        listens = f"grep -q ':{port:04X} .* 0A ' /proc/net/tcp /proc/net/tcp6"
        pingpong = "ibv_rc_pingpong -g 1 " + self.random.choice(["", "-s 300000 -n 100"])
        pair = f"{pingpong} -d mb_0 -p {port} & until {listens} || ! kill -0 $!; do :; done; {pingpong} -d mb_1 -p {port} localhost; wait"
        self.run(enter + ["sh", "-c", pair], 4)


def management(self):
    enter = [self.stage.rocefs, "enter", "-m", self.mnt, "--"]
    while True:
        self.run(enter + self.random.choice([["saquery"], ["perfquery", "-x"], ["ibstat"], ["iblinkinfo"]]), 3)
        self.store(self.debug + "/sa/send", f"burst {self.random.randint(1, 300)} timeout=50ms")


def locks(self):
    """File system calls other than reads and writes."""
    while True:
        path = self.random.choice([f"{self.debug}/seed", f"{self.debug}/links/mb_0-sw_0/loss"])
        def odd():
            fd = os.open(path, os.O_RDWR)
            try:
                for work in (lambda: os.fsync(fd), lambda: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB), lambda: os.ftruncate(fd, 0),
                             lambda: os.lseek(fd, 7, os.SEEK_SET), lambda: os.pread(fd, 3, 1 << 40), lambda: fcntl.ioctl(fd, 0x5401, b"\0" * 64)):
                    try:
                        work()
                    except OSError:
                        pass
            finally:
                os.close(fd)
        self.call(f"odd calls {path}", odd)
        self.pause(0.05)


ACTORS = {"stores": stores, "stores2": stores, "reads": reads, "listings": listings, "listings2": listings, "flows": flows, "flows2": flows, "faults": faults, "drivers": drivers, "resets": resets,
          "captures": captures, "algorithms": algorithms, "polls": polls, "verbs": verbs, "management": management, "locks": locks}
