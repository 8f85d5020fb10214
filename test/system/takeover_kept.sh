#!/bin/bash
# A killed worker that the kernel keeps (here for a debugger) does not prevent a takeover. When the
# supervisor is killed the mount is dead, even if another process holds its connection.
. "$(dirname "$0")/lib/common.bash"
. "$lib/takeover.bash"
needs python3

tracer='import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(0x4206, int(sys.argv[1]), None, None) != 0: sys.exit("no ptrace: errno %d" % ctypes.get_errno())
print("traced", flush=True)
sys.stdin.read()'
exec {hold}<> <(:)  # nothing to read
is_zombie() { grep -q '^State:.Z' "/proc/$1/status"; }
answered() { timeout -s KILL 60 "$@" || fail "status $? of: $*"; }
of_name() { pgrep -f "^$ROCEFS .*$mnt\$" -r S,R,D,T | while read -r pid; do [ "$(<"/proc/$pid/comm")" != "$1" ] || echo "$pid"; done; }

test_case "a killed worker that the kernel keeps is taken over"
mounted -o seed=7
echo 0.5 >"$debug/links/mb_0-sw_0/loss"
worker=$(worker_pid)
python3 -c "$tracer" "$worker" <&$hold >"$dir/tracer" 2>&1 &
debugger=$!
at_end eval 'kill -KILL $debugger 2>/dev/null'
await test -s "$dir/tracer"
[ "$(cat "$dir/tracer")" = traced ] || skip "$(cat "$dir/tracer")"
kill -KILL "$worker"
expect 0.5 "$(answered cat "$debug/links/mb_0-sw_0/loss")" "a cat after the kill"
await is_zombie "$worker"
expect ok "$(store 0.25 "$debug/links/mb_0-sw_0/loss")" "a store"
grep -q "worker $worker died of a signal, and is stuck in the kernel" "$debug/dmesg" || fail "$(cat "$debug/dmesg")"
sed -n 's/.*took over \([0-9.]* ms\) later.*/REPORT a worker that the kernel keeps: taken over \1 after it was given up/p' "$debug/dmesg"
kill -KILL $debugger
await sh -c "! [ -e /proc/$worker ]"  # nobody's zombie
expect 7 "$(answered cat "$debug/seed")" "a cat when it is gone"

test_case "a mount can end with a worker that the kernel keeps"
python3 -c "$tracer" "$(worker_pid)" <&$hold >"$dir/again" 2>&1 &
debugger=$!
at_end eval 'kill -KILL $debugger 2>/dev/null'
await test -s "$dir/again"
supervisor=$(daemon_pid) worker=$(worker_pid)
kill -TERM "$supervisor"
kill -KILL "$worker"
await not_mounted
await all_ended "$supervisor"
kill -KILL $debugger
unmounted

test_case "a mount is gone when its supervisor is killed, even if its connection is held"
# A notifier that does not end holds the connection to the kernel (SIGSTOP stands in for a wait that no signal
# ends).
mounted -o seed=7
supervisor=$(daemon_pid)
worker=$(worker_pid) notifier=$(of_name rocefs-notifier)
[ -n "$notifier" ] && [ -n "$(of_name rocefs-guard)" ] || fail "no notifier, or no guard"
at_end eval 'kill -CONT $notifier 2>/dev/null'
kill -STOP "$notifier"
exec 5<"$debug/seed"
kill -KILL "$supervisor" "$worker"
await not_mounted
expect "Transport endpoint is not connected" "$(quietly timeout -s KILL 5 cat <&5)" "an open file"
exec 5<&-
kill -CONT "$notifier"
unmounted

test_case "a killed notifier is replaced"
mounted -o seed=7
worker=$(worker_pid) notifier=$(of_name rocefs-notifier)
kill -KILL "$notifier"
another() { local now; now=$(of_name rocefs-notifier); [ -n "$now" ] && [ "$now" != "$notifier" ]; }
await another
echo 0000:2b:00.0 >"$mnt/bus/pci/drivers/mango_core/unbind"
expect mb_1 "$(ls "$ib")" "devices"
expect ok "$(store 0000:2b:00.0 "$mnt/bus/pci/drivers/mango_core/bind")" "bind"
expect "mb_0 mb_1" "$(ls "$ib" | xargs)" "devices after bind"
expect "$worker" "$(worker_pid)" "the worker"
unmounted
