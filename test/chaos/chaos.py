"""A chaos run: see test/chaos/run."""
import ctypes
import mmap
import os
import random
import re
import signal
import subprocess
import sys
import time
import traceback

import actors
import strangers
import watch

SECONDS = int(os.environ.get("CHAOS_SECONDS", "60"))
SEED = int(os.environ.get("CHAOS_SEED", time.time_ns() % 1000000))
DEADLINE = float(os.environ.get("CHAOS_DEADLINE", "60"))  # seconds that a call may take
ONLY = os.environ.get("CHAOS_ACTORS", "").split()
LOGS = os.environ["CHAOS_LOGS"]
NOBODY = 65534
GROWTH = 16 << 10  # KiB by which a supervisor may have grown at the end
CONFIG = """[device mb_0]
ip = 10.9.0.{0}
[device mb_1]
ip = 10.77.0.{0}
[switch sw_0]
[uplink up]
[link mb_0 sw_0]
[link mb_1 sw_0]
[link sw_0 up]
"""


class Stage:
    """Two mounts on one wire; the actors work on the near one."""

    def __init__(self):
        self.rocefs = os.environ["ROCEFS"]
        self.work = LOGS + "/work"
        self.mnt, self.far = self.work + "/near", self.work + "/far"
        for path in (self.work, self.mnt, self.far):
            os.makedirs(path)
        os.chmod(self.work, 0o777)
        with open(self.work + "/source", "wb") as file:
            file.write(os.urandom(3 << 20))
        self.there = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
        while os.stat(f"/proc/{self.there.pid}/ns/net").st_ino == os.stat("/proc/self/ns/net").st_ino:
            time.sleep(0.01)
        self.remote = ["nsenter", "-t", str(self.there.pid), "-n"]
        for command in (f"ip link add near mtu 4200 type veth peer name far mtu 4200 netns {self.there.pid}", "ip addr add 10.9.0.1/24 dev near", "ip link set lo up", "ip link set near up"):
            subprocess.run(command.split(), check=True)
        for command in ("ip addr add 10.9.0.2/24 dev far", "ip link set lo up", "ip link set far up"):
            subprocess.run(self.remote + command.split(), check=True)
        self.near_daemon = self.mount(self.mnt, 1, [])
        self.far_daemon = self.mount(self.far, 2, self.remote)

    def mount(self, where, host, how):
        config = f"{self.work}/{host}.ini"
        with open(config, "w") as file:
            file.write(CONFIG.format(host))
        log = open(f"{LOGS}/daemon{host}.log", "wb")
        daemon = subprocess.Popen(how + [self.rocefs, "-f", "-o", f"config={config},allow_other", where], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        end = time.monotonic() + DEADLINE
        while not os.path.ismount(where):
            if daemon.poll() is not None or time.monotonic() > end:
                sys.exit(f"rocefs does not mount: {watch.text_of(log.name)}")
            time.sleep(0.02)
        return daemon

    def worker(self, daemon):
        found = [pid for pid in watch.children(daemon.pid) if watch.text_of(f"/proc/{pid}/comm") == "rocefs-worker"]
        return found[0] if found else None


class Run:
    def __init__(self):
        self.random = random.Random(SEED)
        self.failures = []
        names = {**actors.ACTORS, **strangers.OF_ANOTHER_USER, **strangers.ON_THE_WIRE}
        self.parts = {name: work for name, work in names.items() if not ONLY or name in ONLY}
        self.stage = Stage()
        self.stage.board = watch.Board(len(self.parts))
        self.pids = {}
        self.killed = self.stopped = 0
        self.longest = 0.0

    def fail(self, what):
        self.failures.append(what)
        print(f"FAILED: {what}", flush=True)

    def start(self):
        for slot, (name, work) in enumerate(self.parts.items()):
            seed = self.random.getrandbits(32)
            pid = os.fork()
            if pid == 0:
                os.setpgid(0, 0)
                with open(f"{LOGS}/{name}.log", "w") as log:
                    os.dup2(log.fileno(), 2)
                if name in strangers.ON_THE_WIRE:
                    with open(f"/proc/{self.stage.there.pid}/ns/net") as space:
                        ctypes.CDLL(None).setns(space.fileno(), 0)
                if name not in actors.ACTORS and os.geteuid() == 0:
                    become_nobody()
                actor = actors.Actor(self.stage, slot, name, random.Random(seed))
                try:
                    work(actor)
                except BaseException:
                    traceback.print_exc()
                finally:
                    sys.stderr.flush()
                    os._exit(1)  # no actor ends by itself
            os.setpgid(pid, pid)
            self.pids[name] = pid

    def watch(self):
        for slot, name in enumerate(self.parts):
            began, calls, what = self.stage.board.read(slot)
            if began and (now := time.monotonic()) - began > DEADLINE:
                self.fail(f"a call has waited {now - began:.0f} s: {what}")
                print(watch.picture("the caller", [self.pids[name]] + watch.descendants(self.pids[name])))
                for daemon in (self.stage.near_daemon, self.stage.far_daemon):
                    print(watch.picture("the daemon", [daemon.pid] + watch.descendants(daemon.pid)), flush=True)
                return False
        for name, pid in self.pids.items():
            if os.waitpid(pid, os.WNOHANG)[0]:
                self.fail(f"{name} has ended: {watch.text_of(f'{LOGS}/{name}.log')[-600:]}")
                del self.pids[name]
                return False
        for daemon in (self.stage.near_daemon, self.stage.far_daemon):
            if daemon.poll() is not None:
                self.fail(f"the supervisor has ended: {watch.text_of(f'{LOGS}/daemon1.log')[-600:]}")
                return False
        return not self.reports()

    def reports(self):
        found = False
        for name in sorted(name for name in os.listdir(LOGS) if name.startswith("sanitizer")):
            lines = watch.text_of(f"{LOGS}/{name}").splitlines()
            # LeakSanitizer's message about a thread that has just ended is not a report.
            if any("Unable to get registers from thread" not in line for line in lines):
                found = True
                self.fail(f"{name}: {chr(10).join(lines)[:6000]}")
        return found

    def deaths(self):
        """Reports workers that died of anything but SIGKILL, which this program sends."""
        try:
            with open(self.stage.mnt + "/kernel/debug/rocefs/dmesg", errors="replace") as file:
                lines = file.readlines()
        except OSError:
            return
        for line in lines:
            if match := re.search(r"worker \d+ died of (\S+);", line):
                if match[1] != "SIGKILL":
                    self.fail(line.strip())

    def trouble(self):
        """Kills a worker, or stops it for a while: the near mount's in four of five cases."""
        daemon = self.stage.near_daemon if self.random.random() < 0.8 else self.stage.far_daemon
        worker = self.stage.worker(daemon)
        if worker is None:
            return
        try:
            if self.random.random() < 0.7:
                os.kill(worker, signal.SIGKILL)
                self.killed += 1
                self.await_successor(daemon, worker)
            else:
                os.kill(worker, signal.SIGSTOP)
                time.sleep(self.random.random() * 2)
                os.kill(worker, signal.SIGCONT)
                self.stopped += 1
        except ProcessLookupError:
            pass

    def await_successor(self, daemon, worker):
        began = time.monotonic()
        while self.stage.worker(daemon) in (None, worker):
            if time.monotonic() - began > DEADLINE or daemon.poll() is not None:
                self.fail(f"no successor of worker {worker} after {time.monotonic() - began:.0f} s")
                print(watch.picture("the daemon", [daemon.pid] + watch.descendants(daemon.pid)), flush=True)
                return
            time.sleep(0.005)
        self.longest = max(self.longest, time.monotonic() - began)

    def play(self):
        end = time.monotonic() + SECONDS
        told = time.monotonic()
        while time.monotonic() < end and not self.failures:
            time.sleep(self.random.random() * 4 + 0.5)
            self.trouble()
            self.watch()
            self.deaths()
            if time.monotonic() - told > 600:
                told = time.monotonic()
                print(f"{end - told:.0f} s to go: {self.summary()}", flush=True)

    def calls(self):
        return sum(self.stage.board.read(slot)[1] for slot in range(len(self.parts)))

    def summary(self):
        return f"{self.calls()} calls of {len(self.parts)} actors, {self.killed} workers killed, {self.stopped} stopped, the longest without one {self.longest * 1000:.0f} ms"

    def end_actors(self):
        for pid in self.pids.values():
            for each in stop_tree(pid):
                kill(each)
            try:
                os.killpg(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        end = time.monotonic() + DEADLINE
        for name, pid in self.pids.items():
            while os.waitpid(pid, os.WNOHANG) == (0, 0):
                if time.monotonic() > end:
                    self.fail(f"{name} cannot be killed")
                    print(watch.picture("it", [pid]))
                    break
                time.sleep(0.01)

    def descriptors(self, pid):
        """The open files of a process, except an uplink's sockets, one for each UDP source port."""
        ports = {f"socket:[{line.split()[9]}]" for line in watch.text_of(f"/proc/{pid}/net/udp").splitlines()[1:]}
        try:
            held = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            return []
        return sorted(re.sub(r"\d+", "N", name) for name in held if name not in ports)

    def settle(self):
        """Resets, and expects that the worker has no more descriptors, threads and memory than at the start."""
        debug = self.stage.mnt + "/kernel/debug/rocefs"
        daemon = self.stage.near_daemon
        end = time.monotonic() + DEADLINE
        while True:
            try:
                with open(debug + "/reset", "w") as file:
                    file.write("1")
                break
            except OSError as error:
                if time.monotonic() > end:
                    return self.fail(f"no reset at the end: {error}")
                time.sleep(0.1)
        worker = self.stage.worker(daemon)
        while True:
            old = self.descriptors(worker)
            threads = len(watch.tasks(worker))
            if time.monotonic() > end or (len(old) <= len(self.fresh) + 3 and threads <= self.threads + 3):
                break
            time.sleep(0.1)
        if len(old) > len(self.fresh) + 3 or threads > self.threads + 3:
            more = [name for name in set(old) if old.count(name) > self.fresh.count(name)]
            self.fail(f"left in the worker: {len(old)} descriptors, {len(self.fresh)} at first; {threads} threads, {self.threads} at first; more of {more[:20]}")
            print(watch.picture("it", [worker]), subprocess.run(["ss", "-anp"], capture_output=True, text=True).stdout, flush=True)

        grown = memory(daemon.pid) - self.memory
        if grown > GROWTH and not self.sanitized():  # a sanitizer keeps freed memory for a while
            self.fail(f"the supervisor has grown by {grown} KiB")

    def sanitized(self):
        with open(self.stage.rocefs, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as program:
            return program.find(b"__asan_init") >= 0 or program.find(b"__tsan_init") >= 0

    def end(self):
        self.end_actors()
        if not self.failures:
            self.settle()
            self.deaths()
        for mount, daemon in ((self.stage.mnt, self.stage.near_daemon), (self.stage.far, self.stage.far_daemon)):
            family = watch.descendants(daemon.pid)
            if not self.failures:
                subprocess.run(["fusermount3", "-u", mount], check=False) if subprocess.run(["umount", mount]).returncode else None
            try:
                status = daemon.wait(0 if self.failures else DEADLINE)
                if status != 0 and not self.failures:
                    self.fail(f"the daemon of {mount} ended with status {status}")
            except subprocess.TimeoutExpired:
                if not self.failures:
                    self.fail(f"the daemon of {mount} does not end after the unmount")
                    print(watch.picture("the daemon", [daemon.pid] + watch.descendants(daemon.pid)))
                subprocess.run(["umount", "-f", "-l", mount], check=False)
            end = time.monotonic() + 20
            while (left := [pid for pid in family if alive(pid)]) and time.monotonic() < end:
                time.sleep(0.05)
            if left and not self.failures:
                self.fail(f"left running: {left}")
                print(watch.picture("they", left))
            for pid in [daemon.pid] + left:
                kill(pid)
            if os.path.ismount(mount):
                self.fail(f"{mount} is still mounted")
        self.stage.there.kill()
        self.reports()

    def note_fresh(self):
        worker = self.stage.worker(self.stage.near_daemon)
        self.fresh, self.threads = self.descriptors(worker), len(watch.tasks(worker))
        self.memory = memory(self.stage.near_daemon.pid)


def become_nobody():
    try:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE: processes of the same user may read its memory
    except OSError:
        pass  # a user namespace with a single user


def memory(pid):
    """The resident memory of a process in KiB."""
    return int(re.search(r"VmRSS:\s+(\d+)", watch.text_of(f"/proc/{pid}/status"))[1])


def alive(pid):
    return watch.text_of(f"/proc/{pid}/stat").rpartition(")")[2].split()[:1] not in ([], ["Z"], ["X"])


def kill(pid, how=signal.SIGKILL):
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        pass


def stop_tree(pid):
    """Stops a process and all that it has started: one that is still running might start another one meanwhile."""
    stopped = set()
    while new := {pid, *watch.descendants(pid)} - stopped:
        for each in new:
            kill(each, signal.SIGSTOP)
        stopped |= new
    return stopped


def main():
    run = Run()
    print(f"seed {SEED}, {SECONDS} s, logs in {LOGS}", flush=True)
    run.note_fresh()
    run.start()
    try:
        run.play()
    finally:
        run.end()
    print(f"{len(run.failures)} failures: {run.summary()}; seed {SEED}")
    return 1 if run.failures else 0


sys.exit(main())
