#!/bin/bash
# Programs of another user cannot affect root's daemon that serves them: each of its threads is root's.
. "$(dirname "$0")/lib/common.bash"
. "$lib/verbs.bash"
needs_root "only root's daemon serves other users"
needs ibv_rc_pingpong
logs=$dir
mounted -o allow_other
verbs=("$ROCEFS" enter -m "$mnt" -- setpriv --reuid="$user" --regid="$user" --clear-groups)
needs_enter
worker=$(worker_pid) || fail "no worker: $(ps -C rocefs,rocefs-worker -o pid,ppid,stat,comm,args)"

clients=()
end_clients() { kill "${clients[@]}" 2>/dev/null || true; wait; }
at_end end_clients
start_server ibv_rc_pingpong -g 1 -n 100000000
clients+=("$server")
timeout -k 5 60 "${verbs[@]}" ibv_rc_pingpong -g 1 -n 100000000 -d mb_1 -p $port 127.0.0.1 >"$logs/client" 2>&1 &
clients+=($!)
copy_threads() { cat "/proc/$worker/task/"*/comm 2>/dev/null | grep -c rocefs-copy || true; }
moves_on() {
  local before
  before=$(<"$ib/mb_1/ports/1/counters/port_xmit_data")
  await more_than "$before"
}
more_than() { [ "$(<"$ib/mb_1/ports/1/counters/port_xmit_data")" -gt "$1" ]; }
two_move() { [ "$(copy_threads)" = 2 ]; }
await two_move
moves_on

test_case "each thread of root's worker belongs to root"
expect "$(printf 'Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0')" \
  "$(cat "/proc/$worker/task/"*/status | grep -E '^[UG]id:' | sort -ru)" "who the worker's threads are"

test_case "another user cannot affect the worker"
said=$(python3 - "$worker" <<'ATTACK'
import os, resource, signal, sys

worker = int(sys.argv[1])
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
threads = [int(thread) for thread in os.listdir(f'/proc/{worker}/task')]
attacks = {
    'signal': lambda thread: os.kill(thread, signal.SIGSTOP),
    'limit': lambda thread: resource.prlimit(thread, resource.RLIMIT_NOFILE, (0, 0)),
    'policy': lambda thread: os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0)),
    'priority': lambda thread: os.setpriority(os.PRIO_PROCESS, thread, 19),
    'CPUs': lambda thread: os.sched_setaffinity(thread, {0}),
    'memory': lambda thread: open(f'/proc/{thread}/mem', 'rb+').close(),
}
for what, attack in attacks.items():
    for thread in threads:
        try:
            attack(thread)
            print(f'{what} of thread {thread}')
        except PermissionError:
            pass
print(f'{"enough" if len(threads) > 3 else "few"} threads')
ATTACK
)
expect "enough threads" "$said" "what another user may do to the worker"
moves_on
expect "$worker" "$(worker_pid)" "the worker"
