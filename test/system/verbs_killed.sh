#!/bin/bash
# Verbs programs that are killed at random under load, for ROCEFS_KILL_SECONDS (3): a bystander's
# pingpongs continue, and killed programs leave nothing in the engine.
. "$(dirname "$0")/lib/common.bash"
. "$lib/verbs.bash"
needs ib_write_bw
logs=$dir
mounted
verbs=("$ROCEFS" enter -m "$mnt" --)
needs_enter
worker=$(worker_pid)

open_files() { readlink "/proc/$worker/fd/"* | grep -cE 'rocefs-(context|queue)|pidfd' || true; }
copy_threads() { cat "/proc/$worker/task/"*/comm 2>/dev/null | grep -c rocefs-copy || true; }
queue_pairs() { ls "$ib"/mb_{0,1}/pcc/qps | grep -c '^[0-9]' || true; }
nothing_left() { [ "$(open_files) $(copy_threads) $(queue_pairs)" = "0 0 0" ]; }
# An endless pair of programs, inside one `enter`; it restarts whenever one of them has died.
cat >"$dir/load" <<'LOAD'
port=$1
shift
while :; do
  "$@" -d mb_0 -p "$port" -n 10000000 >/dev/null 2>&1 &
  server=$!
  until grep -qi ":$(printf %04X "$port") .* 0A " /proc/net/tcp /proc/net/tcp6 || ! kill -0 $server 2>/dev/null; do read -rt 0.02 <> <(:); done
  "$@" -d mb_1 -p "$port" -n 10000000 127.0.0.1 >/dev/null 2>&1 &
  wait -n
  kill -KILL $server $! 2>/dev/null
  wait
  port=$((port + 4))
done
LOAD
loads=()
first=$((30000 + $$ % 10000))
# Each load is a process group: its bash could miss a signal just before it waits.
end_loads() {
  local load
  for load in "${loads[@]}"; do kill -KILL -- "-$load" 2>/dev/null || true; done
}
start_load() {
  setsid "${verbs[@]}" bash "$dir/load" $((first + ${#loads[@]})) "$@" 2>/dev/null &
  loads+=($!)
}

test_case "an engine holds nothing for programs at first"
nothing_left || fail "at first: $(open_files) files, $(copy_threads) threads, $(queue_pairs) queue pairs"

test_case "a bystander is served while others are killed, and they leave nothing behind"
at_end end_loads
start_load ib_write_bw -q 4
start_load ib_send_bw -s 4096
start_load ib_read_bw -s 1048576
start_load ib_atomic_bw

killed=0
kill_one() {
  local running
  mapfile -t running < <(pgrep -x "ib_(write|send|read|atomic)_bw" -s "$(IFS=,; echo "${loads[*]}")")
  [ ${#running[@]} -gt 0 ] || return 0
  if kill -KILL "${running[RANDOM % ${#running[@]}]}" 2>/dev/null; then killed=$((killed + 1)); fi
}
end=$((SECONDS + ${ROCEFS_KILL_SECONDS:-3}))
rounds=0 longest=0
until [ $SECONDS -ge $end ]; do
  begin=${EPOCHREALTIME/./}
  pingpong 819200 ibv_rc_pingpong -g 1 -n 100 &
  bystander=$!
  while kill -0 $bystander 2>/dev/null; do
    kill_one
    read -rt 0.0$((RANDOM % 90 + 10)) <> <(:) || true
  done
  wait $bystander || fail "the bystander, after $killed were killed: $(said_both)"
  took=$((${EPOCHREALTIME/./} - begin))
  [ $took -le $longest ] || longest=$took
  rounds=$((rounds + 1))
done
end_loads
wait "${loads[@]}" 2>/dev/null || true
await nothing_left
expect "$worker" "$(worker_pid)" "the worker"
pingpong 819200 ibv_rc_pingpong -g 1 -n 100
echo "REPORT $killed programs killed in $rounds rounds of the bystander, the longest of $((longest / 1000)) ms"
[ $killed -gt 0 ] || fail "nobody was killed"
unmounted
