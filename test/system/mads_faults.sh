#!/bin/bash
# MADs while programs die, devices leave and workers are killed: nothing is left behind, and other programs do
# not notice.
. "$(dirname "$0")/lib/common.bash"
. "$lib/mads.bash"
needs saquery
mounted
diags=("$ROCEFS" enter -m "$mnt" --)
needs_enter
limits=$ib/mb_0/mad_sa_cc/1
nothing_left() { [ "$(cat "$limits/outstanding" "$limits/queued" | xargs)" = "0 0" ]; }
is_busy() { [ "$(cat "$limits/outstanding")" != 0 ]; }

serves() { grep -q NodeRecord <<<"$(run saquery -C mb_0 -P 1 -N)" || fail "$1"; }
driver=$mnt/bus/pci/drivers/mango_core
waiting() {  # starts a saquery that waits for its answer
  echo 10s >"$debug/sa/delay"
  "${diags[@]}" timeout 60 saquery -C mb_0 -P 1 -t 20000 -c >"$dir/waits" 2>&1 &
  waiter=$!
  await is_busy
}
ended() {  # WHAT: it ended, and not well
  local status=0
  wait $waiter || status=$?
  [ $status -ne 0 ] && [ $status -ne 124 ] || fail "$1: saquery's status is $status"
  echo 0 >"$debug/sa/delay"
}

test_case "a hundred killed saqueries leave nothing behind"
echo 200ms >"$debug/sa/delay"
echo 64 >"$limits/max_outstanding"
"${diags[@]}" bash -c 'for i in {1..100}; do
    saquery -C mb_0 -P 1 -t 5000 -c >/dev/null 2>&1 &
    pids+=($!)
    [ $((i % 10)) -ne 0 ] || read -rt "0.0$((RANDOM % 9 + 1))" <> <(:) || true
  done; kill -KILL "${pids[@]}"; wait' 2>/dev/null || true
await nothing_left
echo 0 >"$debug/sa/delay"
serves "saquery after those that were killed"

test_case "a device that leaves ends a waiting saquery, and serves when it is back"
waiting
echo 0000:2b:00.0 >"$driver/unbind"
ended "unbind"
[ ! -e "$mnt/dev/infiniband/umad0" ] || fail "umad0 without its device"
echo 0000:2b:00.0 >"$driver/bind"
await nothing_left
serves "saquery after bind"

test_case "a reset drops pending requests, and the program is told"
waiting
echo 1 >"$debug/reset"
nothing_left || fail "a reset leaves $(cat "$limits/outstanding") outstanding, $(cat "$limits/queued") queued"
ended "reset"

test_case "waiting programs end with their worker, and the next worker serves"
for i in 1 2; do
  waiting
  kill -KILL "$(worker_pid)"
  ended "worker $i"
  await nothing_left
  serves "saquery after worker $i"
done
