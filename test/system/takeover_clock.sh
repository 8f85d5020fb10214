#!/bin/bash
# The state of clock/ survives a worker: scheduled stores are applied once, at their instants; the log is
# kept; time does not go back, and an interrupted advance ends at its original time.
. "$(dirname "$0")/lib/common.bash"
. "$lib/takeover.bash"

here=kernel/debug/rocefs
link=$here/links/mb_0-sw_0
loss=$mnt/$link/loss
clock=$debug/clock
log() { grep -v '^#' "$clock/log" || true; }
now() { cat "$clock/now_ns"; }
busy() {  # FAULT SAID: a worker dies in the middle of an advance; $before is a time that was read
  mounted_with "$1" -o clock=virtual
  echo 1ms >"$clock/advance"
  echo "endless write mb_0 mb_1 count=1000000000 size=4K" >"$debug/traffic/start"
  store 1000s "$clock/advance" >"$dir/said" &
  local waiting=$!
  await sh -c "[ \$(cat '$clock/now_ns') -gt 2000000 ]"
  before=$(now)
  kill_worker
  wait $waiting
  expect "$2" "$(sed 's/.*: //' "$dir/said")" "an advance under way, $1"
}

test_case "a store to clock/at survives a worker's death at any step"
for stage in taken applied staged committing committed answered; do
  mounted_with write-$stage -o clock=virtual
  expect ok "$(store "5ms $link/loss=0.5" "$clock/at")" "at"
  fired write-$stage || fail "write-$stage did not fire"
  expect "@5000000 $link/loss=0.5" "$(cat "$clock/at")" "what is to come, write-$stage"
  echo 4999999 >"$clock/advance"
  expect 0 "$(cat "$loss")" "a nanosecond before"
  echo 1 >"$clock/advance"
  expect 0.5 "$(cat "$loss")" "at the time"
  expect "@5000000 $link/loss=0.5" "$(log)" "the log"
  unmounted
done

test_case "stores are applied once, even if workers die amid an advance"
stores="@5000000 $link/loss=0.5
@5000000 $link/rate=5G $link/delay=7us
@5000000 $link/loss=0.25
@7000000 class/infiniband/mb_0/node_desc='it\\'s here'
@8000000 $here/traffic/start='f write mb_0 mb_1'"
for point in own-{staged,committing}{,:2,:3,:4,:5}; do
  mounted_with $point -o clock=virtual
  while IFS= read -r line; do printf '%s\n' "$line" >"$clock/at"; done <<<"$stores"
  expect "$stores" "$(cat "$clock/at")" "what is to come"
  expect ok "$(store 20ms "$clock/advance")" "advance, $point"
  fired "${point%:*}" || fail "$point did not fire"
  expect 20000000 "$(now)" "time, $point"
  expect "$stores" "$(log)" "the log, $point"
  expect "" "$(cat "$clock/at")" "what is to come afterwards, $point"
  expect "0.25 5G 7us" "$(cat "$mnt/$link"/{loss,rate,delay} | xargs)" "knobs, $point"
  expect "it's here" "$(cat "$ib/mb_0/node_desc")" "node_desc, $point"
  [ $point != own-staged:5 ] || state_is f "done" || fail "a flow that was started again"
  unmounted
done

test_case "scheduled lines keep their order through many takeovers"
# Through many takeovers lines keep their order, cancelled ones stay away, and bad ones are refused in time.
mounted_with "" -o clock=virtual
echo 0.125 >"$loss"
for round in 1 2 3; do
  printf '@%dms %s\n' $((round + 10)) "$link/loss=0.$round" >"$clock/at"
  echo "@50ms $link/rate=${round}G" >"$clock/at"
  before=$(cat "$clock/at" "$clock/log")
  kill_worker
  await took_over $round
  expect "$before" "$(cat "$clock/at" "$clock/log" | sed '$d')" "at and log, round $round"
  expect "# @0 another worker took over: flows and captures have ended" "$(tail -n 1 "$clock/log")" "the last line"
done
expect "$(printf "@1%d000000 $link/loss=0.%d\n" 1 1 2 2 3 3)
$(printf "@50000000 $link/rate=%dG\n" 1 2 3)" "$(cat "$clock/at")" "what is to come"
echo "1ms $here/traffic/start='f fly mb_0 mb_1'" >"$clock/at"
kill_worker
echo idle >"$clock/advance"
expect "0.3 3G" "$(cat "$mnt/$link"/{loss,rate} | xargs)" "knobs"
expect 1 "$(grep -cF "@1000000 $here/traffic/start='f fly mb_0 mb_1': unknown op" "$debug/dmesg")" "lines about a refusal"
expect 7 "$(log | wc -l)" "lines of the log"
echo "5ms $link/loss=0" >"$clock/at"
kill_worker
echo clear >"$clock/at"
kill_worker
expect "" "$(cat "$clock/at")" "after clear"

test_case "a scheduled store waits for its device, too"
# The device is without a driver when the worker dies.
echo "@60ms class/infiniband/mb_0/node_desc=late" >"$clock/at"
echo "@70ms class/infiniband/mb_0/node_desc=later" >"$clock/at"
echo 0000:2b:00.0 >"$mnt/bus/pci/drivers/mango_core/unbind"
kill_worker
echo 15ms >"$clock/advance"
echo 0000:2b:00.0 >"$mnt/bus/pci/drivers/mango_core/bind"
echo idle >"$clock/advance"
grep -qF "@60000000 class/infiniband/mb_0/node_desc=late: " "$debug/dmesg" || fail "no word of a device that was gone"
expect later "$(cat "$ib/mb_0/node_desc")" "a device that came again"
unmounted

test_case "a full schedule survives a takeover"
mounted_with "" -o clock=virtual
python3 -c 'import errno, sys
at = open(sys.argv[1], "wb", buffering=0)
taken = 0
try:
    while True:
        at.write(b"@%d kernel/debug/rocefs/traffic/f/stop=%s\n" % (10**9 + taken, b"1" * 4000))
        taken += 1
except OSError as error:
    print(taken, errno.errorcode[error.errno])' "$clock/at" >"$dir/taken"
expect ENOSPC "$(cut -d' ' -f2 "$dir/taken")" "at when it is full"
[ "$(cut -d' ' -f1 "$dir/taken")" -gt 4000 ] || fail "full at $(cat "$dir/taken")"
cksum "$clock/at" >"$dir/full"
kill_worker
await took_over 1
cksum "$clock/at" | diff "$dir/full" - || fail "other lines are to come"
sed -n 's/.*took over/took over/p' "$debug/dmesg"
expect "No space left on device" "$(store "@1ms $here/traffic/f/stop=$(printf '1%.0s' {1..4000})" "$clock/at")" "after a takeover"
echo clear >"$clock/at"
expect ok "$(store "@2ms $link/loss=0.5" "$clock/at")" "after clear"
echo clear >"$clock/at"
echo idle >"$clock/advance"
expect 0 "$(now)" "nothing is to come"
unmounted

test_case "an interrupted advance ends at its original time"
busy "" ok
expect 1000001000000 "$(now)" "an advance ends where it would have"
expect ok "$(store 5us "$clock/advance")" "another one"
expect 1000001005000 "$(now)" "lets as much pass as it says"

test_case "without resend an interrupted advance ends with EIO, and time does not go back"
busy no-resend "Input/output error"
after=$(now)
{ [ "$after" -ge "$before" ] && [ "$after" -lt 1000000000000 ]; } || fail "it was $before, and is $after"
expect ok "$(store 5us "$clock/advance")" "another one"
expect $((after + 5000)) "$(now)" "lets as much pass as it says"
unmounted

test_case "under the real clock a store that comes due meanwhile is late, not lost"
# The real clock: instants are those of now_ns; a store that comes due without a worker is late, not lost.
mounted_with ""
supervisor=$(daemon_pid)
worker=$(pgrep -P "$supervisor")
kill -STOP "$supervisor"
begin=$(now)
echo "@$((begin + 400000000)) $link/loss=0.5" >"$clock/at"
echo "@$((begin + 300000000)) $link/delay=9us" >"$clock/at"
echo "@$((begin + 900000000)) $link/loss=0.25" >"$clock/at"
echo "3600s $link/loss=1" >"$clock/at"
kill -KILL "$worker"
end=$((${EPOCHREALTIME/./} + 600000))
await sh -c "[ \$(date +%s%6N) -gt $end ]"
kill -CONT "$supervisor"
loss_is() { [ "$(cat "$loss")" = "$1" ]; }
await loss_is 0.25
log >"$dir/log"
expect "delay=9us loss=0.5 loss=0.25" "$(sed "s|.*/||" "$dir/log" | xargs)" "the log"
awk -v begin="$begin" '{at = substr($1, 2) - begin} at < (NR == 3 ? 900000000 : 600000000) {exit 1}' "$dir/log" ||
  fail "before its time, after $begin: $(cat "$dir/log")"
expect 1 "$(wc -l <"$clock/at")" "lines that are still to come"
unmounted
