#!/bin/bash
# A service manager and rocefs, by the protocol of sd_notify(3): reports, signals, watchdog.
. "$(dirname "$0")/lib/common.bash"
needs python3

heard=$dir/heard
listen() {  # SOCKET
  rm -f "$heard" "$dir/notify" "$dir/listening"
  python3 "$lib/service_manager.py" "$1" "$heard" >"$dir/listening" &
  listener=$!
  at_end eval "kill $listener 2>/dev/null"
  await test -s "$dir/listening"
  socket=$1
}
hears_no_more() { kill $listener && wait $listener 2>/dev/null || true; }
# Runs rocefs in the foreground, beside the test; $main is its process.
serve_here() { unmounted; NOTIFY_SOCKET=$socket "$ROCEFS" -f "$mnt" >/dev/null & main=$!; }
open_files() { awk '/^Max open files/ {print $4}' "/proc/$1/limits"; }
line() { sed -n "${1}p" "$heard" 2>/dev/null; }
said() { [ -n "$(line "$1")" ]; }

test_case "in the background the remaining process is announced before the first one ends"
for socket in "$dir/notify" "@rocefs-test-$$"; do
  listen "$socket"
  NOTIFY_SOCKET=$socket mounted
  daemon=$(daemon_pid)
  await said 1
  expect "READY=1|MAINPID=$daemon|STATUS=serving $mnt, worker $(worker_pid)" "$(line 1 | cut -d' ' -f2-)" "ready, $socket"
  [ "$(line 1 | cut -d' ' -f1)" != "$daemon" ] || fail "not the parent's word: $(line 1)"
  unmounted
  await said 2
  expect "$daemon STOPPING=1|STATUS=unmounting $mnt" "$(line 2)" "unmounted, $socket"
  expect 2 "$(wc -l <"$heard")" "what was said"
  hears_no_more
done

test_case "in the foreground each signal ends it cleanly"
for signal in TERM INT HUP; do
  listen "$dir/notify"
  serve_here
  await said 1
  expect "$main READY=1|MAINPID=$main|STATUS=serving $mnt, worker $(worker_pid)" "$(line 1)" "ready with -f"
  mountpoint -q "$mnt" || fail "ready, and not mounted"
  kill -$signal $main
  wait $main || fail "status $? after SIG$signal"
  mountpoint -q "$mnt" && fail "mounted after SIG$signal"
  await said 2
  expect "$main STOPPING=1|STATUS=unmounting $mnt" "$(line 2)" "SIG$signal"
  hears_no_more
done

test_case "supervisor and worker that are signalled together end cleanly"
# Supervisor and worker are signalled together, as a control group is, while a file is open.
listen "$dir/notify"
serve_here
await said 1
exec 5<"$debug/seed"
kill -TERM $main "$(worker_pid)"
wait $main || fail "status $? when all were told to end"
exec 5<&-
mountpoint -q "$mnt" && fail "mounted when all were told to end"
expect 2 "$(wc -l <"$heard")" "what was said when all were told to end"
hears_no_more

test_case "a start that fails is never announced as ready"
listen "$dir/notify"
touch "$dir/file"
NOTIFY_SOCKET=$socket "$ROCEFS" "$dir/file" 2>/dev/null && fail "mounted on a file"
NOTIFY_SOCKET=$socket "$ROCEFS" -f -o config="$dir/none" "$mnt" 2>/dev/null && fail "mounted without its file"
[ ! -s "$heard" ] || ! grep -v "STOPPING=1" "$heard" || fail "ready, and it was not"
hears_no_more

test_case "a takeover is announced"
listen "$dir/notify"
(ulimit -Sn 512; WATCHDOG_USEC=60000000 NOTIFY_SOCKET=$socket mounted)
daemon=$(daemon_pid)
expect "$(ulimit -Hn)" "$(open_files "$(worker_pid)")" "the worker's limit of open files"
await grep -q READY "$heard"
# Not SEGV: sanitizers catch it.
kill -ILL "$(worker_pid)"
await grep -q "died, the last of SIGILL" "$heard"
expect "$daemon STATUS=serving $mnt, worker $(worker_pid); 1 died, the last of SIGILL" "$(grep STATUS "$heard" | tail -n 1)" "takeover"
hears_no_more

test_case "a process started by the daemon inherits nothing of the manager's"
[ -x "$(dirname "$ROCEFS")/mango-pccd" ] || skip "no mango-pccd here"
echo aimd >"$ib/mb_0/pcc/algo"
echo start >"$ib/mb_0/pcc/state"
card() { pgrep -P "$(worker_pid)" -f "^[^ ]*mango-pccd mb_0"; }
await card >/dev/null
expect 512 "$(open_files "$(card)")" "the card's process: limit of open files"
grep -qz '^PATH=' "/proc/$(card)/environ" || fail "the card's process has no environment"
! grep -zE '^(NOTIFY_SOCKET|WATCHDOG_)' "/proc/$(card)/environ" || fail "the card's process may speak to the manager"

test_case "a working worker feeds the watchdog, and a hanging one is replaced"
listen "$dir/notify"
WATCHDOG_USEC=4000000 serve_here
await said 1
fed() { [ "$(grep -c "^$main WATCHDOG=1$" "$heard")" -ge "$1" ]; }
await fed 3
hanging=$(worker_pid)
kill -STOP "$hanging"
expect "mb_0 mb_1" "$(ls "$ib" | xargs)" "while the worker hangs"
[ "$(worker_pid)" != "$hanging" ] || fail "the worker that hangs is still there"
await grep -q "1 died, the last of hanging" "$heard"
grep -q "worker $hanging died of hanging" "$debug/dmesg" || fail "dmesg is silent about what hung"
feeds=$(grep -c WATCHDOG "$heard")
await fed $((feeds + 3))
kill -TERM $main
wait $main || fail "status $? with a watchdog"
hears_no_more

test_case "the watchdog of another process is not fed"
listen "$dir/notify"
WATCHDOG_USEC=200000 WATCHDOG_PID=1 serve_here
await said 1
read -rt 0.5 <> <(:) || true
kill -TERM $main
wait $main
expect 0 "$(grep -c WATCHDOG "$heard")" "another's watchdog"
hears_no_more

test_case "a missing manager does not stop the daemon"
# A missing manager does not stop the daemon.
NOTIFY_SOCKET=$dir/nobody "$ROCEFS" "$mnt" >/dev/null
unmounted
