#!/bin/bash
# Idle and mounted for ten seconds, the daemon uses less than 0.5 % of one CPU.
. "$(dirname "$0")/lib/common.bash"
mounted
supervisor=$(daemon_pid) worker=$(worker_pid)
ticks() { awk '{sum += $14 + $15} END {print sum}' "/proc/$supervisor/stat" "/proc/$worker/stat"; }

test_case "an idle daemon uses less than 0.5 % of a CPU"
echo "f write mb_0 mb_1 count=100" >"$debug/traffic/start"
await state_is f "done"
before=$(ticks)
timeout 10 tail -f /dev/null || true
used=$(($(ticks) - before))
hz=$(getconf CLK_TCK)
echo "$used ticks of $((10 * hz))"
[ $((used * 200)) -lt $((10 * hz)) ] || fail "$used of $((10 * hz)) ticks while idle"
