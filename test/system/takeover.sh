#!/bin/bash
# The worker dies at each step of its work, and under many concurrent calls; users of the mount only wait
# a little. Accepted stores are applied exactly once.
. "$(dirname "$0")/lib/common.bash"
. "$lib/takeover.bash"

loss=$debug/links/mb_0-sw_0/loss

advance() { echo 1us >"$debug/clock/advance"; }
# Uses one operation of each kind.
use() {
  expect 0 "$(cat "$loss")" "cat before the store"
  expect ok "$(store 0.25 "$loss")" "store"
  expect 0.25 "$(cat "$loss")" "cat after the store"
  chmod 600 "$loss"
  expect 600 "$(stat -c %a "$loss")" "mode"
  expect "mb_0-sw_0 mb_1-sw_0 sw_0-mb_0 sw_0-mb_1" "$(ls "$debug/links" | xargs)" "ls"
  expect ok "$(store 1ms "$debug/clock/advance")" "advance"
  expect 1000000 "$(cat "$debug/clock/now_ns")" "time after one advance"
  expect ok "$(store "f write mb_0 mb_1" "$debug/traffic/start")" "start of a flow"
  [[ $point != ioctl-* ]] || ask
}

moving() { [ "$(cat "$debug/clock/now_ns")" -gt 0 ]; }
waiting_store() {  # FAULT WANTED
  mounted_with "$1" -o clock=virtual
  echo "endless write mb_0 mb_1 count=1000000000 size=4K" >"$debug/traffic/start"
  store 1000s "$debug/clock/advance" >"$dir/said" &
  local waiting=$!
  await moving
  kill_worker
  wait $waiting
  expect "$2" "$(sed 's/.*: //' "$dir/said")" "a store that waited, $1"
  unmounted
}

points=()
# ROCEFS_TAKEOVER=all: tests each operation; otherwise those that change something, and an open file.
operations="open write"
[ -z "${ROCEFS_TAKEOVER:-}" ] || operations="setattr open write release opendir releasedir"
ask() { :; }
if command -v python3 >/dev/null; then
  operations+=" ioctl"
  # IB_USER_MAD_ENABLE_PKEY. Open umad files end with their worker: ENODEV then.
  ask() {
    python3 -c 'import fcntl, os, sys; fcntl.ioctl(os.open(sys.argv[1], os.O_RDWR), 0x1b03)' "$mnt/dev/infiniband/umad0" 2>/dev/null || :
  }
fi
for operation in $operations; do
  for stage in taken applied staged committing committed answered; do points+=("$operation-$stage"); done
done
for operation in lookup getattr readlink read readdir; do
  for stage in taken applied answered; do points+=("$operation-$stage"); done
done

test_case "a worker's death at any step goes unnoticed"
for point in "${points[@]}" write-applied:2 write-committed:2 write-committed:3 any-answered:40; do
  mounted_with "$point" -o clock=virtual
  readlink "$ib/mb_0" >/dev/null
  use
  fired "${point%:*}" || fail "$point did not fire"
  unmounted
done

test_case "without resend only requests in flight end with EIO"
# Where the kernel cannot send requests again, requests in flight end with EIO, and those in the journal are
# answered from it.
for point in "${points[@]}"; do
  mounted_with "no-resend,$point" -o clock=virtual
  readlink "$ib/mb_0" >/dev/null || true
  for text in 0.25 0.5; do
    said=$(store "$text" "$loss")
    [[ $said = ok || $said = "Input/output error" || $said = "write error: Input/output error" ]] ||
      fail "$point: store said '$said'"
    value=$(quietly cat "$loss") || true
    [[ $value = 0 || $value = 0.25 || $value = 0.5 || $value = "Input/output error" ]] ||
      fail "$point: cat said '$value'"
    [ "$said" != ok ] || [ "$value" = "$text" ] || [ "$value" = "Input/output error" ] ||
      fail "$point: stored $text, and $value is there"
    quietly chmod 600 "$loss" >/dev/null || true
    quietly ls "$debug/links" >/dev/null || true
    ask || true
  done
  fired "$point" || fail "$point did not fire"
  case $point in write-committ* | write-answered)
    grep -q "ended with EIO" "$debug/dmesg" || fail "$point: nothing said of EIO" ;;
  esac
  expect ok "$(store 0.125 "$loss")" "$point: store afterwards"
  expect 0.125 "$(cat "$loss")" "$point: cat afterwards"
  unmounted
done

test_case "open, changed and set files outlive three workers"
mounted -o dilation=3
exec 5<"$loss" 6>"$loss" 7<"$debug/links"
echo 0.5 >"$loss"
echo 5 >"$debug/clock/dilation"
echo x 2>/dev/null >"$loss" && fail "x is no probability"
chmod 600 "$debug/seed"
changed=$(stat -c %y "$loss")
before=$(cat "$debug/clock/now_ns")
python3 -c 'import select, sys
file = open(sys.argv[1]); file.read()
poll = select.poll(); poll.register(file, select.POLLPRI)
print("waiting", flush=True); poll.poll()' "$debug/links/mb_1-sw_0/loss" >"$dir/polled" &
poller=$!
await test -s "$dir/polled"
for round in 1 2 3; do
  kill_worker
  await took_over $round
  expect 0.5 "$(cat "$loss")" "a setting"
  expect 5 "$(cat "$debug/clock/dilation")" "dilation"
  expect 600 "$(stat -c %a "$debug/seed")" "a mode"
  expect "$changed" "$(stat -c %y "$loss")" "a date"
done
wait $poller  # asks again after a takeover, and hears that something may have changed
expect 0.5 "$(cat <&5)" "a file that was open"
echo 0.25 >&6
expect 0.25 "$(cat "$loss")" "a store to a file that was open"
exec 5<&- 6>&- 7<&-
[ "$(cat "$debug/clock/now_ns")" -gt "$before" ] || fail "time went back"
expect 1 "$(grep -c "'x'" "$debug/dmesg")" "lines about the refused store"
unmounted

test_case "a flow does not survive a takeover, and its name is free"
mounted -o clock=virtual
echo "f write mb_0 mb_1" >"$debug/traffic/start"
exec 5<"$debug/traffic/f/state"
echo "lost drop mb_0-sw_0 opcode=nak" >"$debug/inject/add"
kill_worker
expect "No such device" "$(quietly read -ru 5)" "a file of a flow that is gone"
expect "" "$(cat "$debug/inject/list")" "faults"
grep -q "flows, loads, captures, faults and PCC have ended, counters begin anew" "$debug/dmesg" || fail "$(cat "$debug/dmesg")"
exec 5<&-
expect ok "$(store "f write mb_0 mb_1" "$debug/traffic/start")" "its name"
unmounted

test_case "a waiting store is answered when its worker dies"
waiting_store "" ok
waiting_store no-resend "Input/output error"

test_case "many reads and stores are served while worker after worker is killed"
# 1,000 cats and 1,000 stores at a time while worker after worker is killed. Each store lets 1 us pass:
# the clock counts them. How long the mount stood still is in dmesg.
mounted -o clock=virtual
exec 5<"$loss"
cat_all() { local i; for ((i = 0; i < 10; ++i)); do cat "$loss" "$ib/mb_0/node_guid"; done; }
crowd=()
for ((i = 0; i < 100; ++i)); do
  cat_all >>"$dir/cats" 2>>"$dir/errors" &
  crowd+=($!)
done
for ((i = 0; i < 1000; ++i)); do
  advance 2>>"$dir/errors" &
  crowd+=($!)
  [ $((i % 200)) -ne 199 ] || kill_worker
done
kill_worker
for pid in "${crowd[@]}"; do wait "$pid" || fail "$pid: status $?: $(head -n 3 "$dir/errors")"; done
[ ! -s "$dir/errors" ] || fail "$(head -n 3 "$dir/errors")"
expect 2000 "$(wc -l <"$dir/cats")" "answers to the cats"
expect 2 "$(sort -u "$dir/cats" | wc -l)" "different answers to the cats"
expect 1000000 "$(cat "$debug/clock/now_ns")" "1,000 stores of 1 us"
longest=$(sed -n 's/.*took over \([0-9]*\).*/\1/p' "$debug/dmesg" | sort -n | tail -n 1)
echo "longest of $(grep -c 'took over' "$debug/dmesg") takeovers: $longest ms"
[ "$longest" -lt 1000 ] || fail "a takeover of $longest ms"
expect 0 "$(cat <&5)" "a file that was open through all of it"
exec 5<&-
grep -h "in flight" "$debug/dmesg"
start=${EPOCHREALTIME/./}  # microseconds
kill_worker
cat "$loss" >/dev/null
pause=$(((${EPOCHREALTIME/./} - start) / 1000))
echo "killed, noticed and read again: $pause ms"
[ "$pause" -lt 1000 ] || fail "a pause of $pause ms"
unmounted

test_case "without resend an accepted store is done, and others get EIO"
mounted_with no-resend -o clock=virtual
rm -f "$dir/errors"
crowd=()
for ((i = 0; i < 500; ++i)); do
  { cat "$loss" >/dev/null && advance && echo stored >>"$dir/stored"; } 2>>"$dir/errors" &
  crowd+=($!)
  [ $((i % 100)) -ne 99 ] || kill_worker
done
for pid in "${crowd[@]}"; do wait "$pid" || true; done
other=$(grep -v "Input/output error" "$dir/errors") && fail "$(head -n 3 <<<"$other")"
stored=$(wc -l <"$dir/stored") passed=$(($(cat "$debug/clock/now_ns") / 1000))
echo "of 500 stores $stored were accepted and $passed are counted; the rest ended with EIO"
[ "$stored" -le "$passed" ] && [ "$passed" -le 500 ] && [ "$stored" -gt 0 ] ||
  fail "$stored stores accepted, $passed counted"
unmounted

test_case "a worker may die during a takeover"
for point in restore resend; do
  mounted_with $point
  echo 0.5 >"$loss"
  kill -KILL "$(worker_pid)"
  expect 0.5 "$(cat "$loss")" "after a death in $point"
  fired $point || fail "$point did not fire"
  unmounted
done

test_case "workers that keep dying are not replaced for ever"
mounted_with restore:each
supervisor=$(daemon_pid)
kill -KILL "$(worker_pid)"
await not_mounted
await sh -c "! kill -0 $supervisor 2>/dev/null || grep -q '^State:.Z' /proc/$supervisor/status"

test_case "the end of a mount leaves nothing behind"
# Nothing is left behind by an orderly end, of supervisor or worker, or by a killed supervisor.
for process in daemon_pid worker_pid; do
  mounted
  kill -TERM "$($process)"
  await not_mounted
  await sh -c "! pgrep -cr S,R,D -f '^$ROCEFS $mnt' >'$dir/left'"
done
mounted
kill -KILL "$(daemon_pid)"
await sh -c "! pgrep -cr S,R,D -f '^$ROCEFS $mnt' >'$dir/left' && ! cat '$debug/seed' 2>/dev/null"

test_case "a device without a driver stays without it, and can be bound again"
mounted_with ""
echo 0000:2b:00.0 >"$mnt/bus/pci/drivers/mango_core/unbind"
kill -KILL "$(worker_pid)"
expect mb_1 "$(ls "$ib")" "devices after the takeover"
expect ok "$(store 0000:2b:00.0 "$mnt/bus/pci/drivers/mango_core/bind")" "bind"
expect "mb_0 mb_1" "$(ls "$ib" | xargs)" "devices after bind"
unmounted
