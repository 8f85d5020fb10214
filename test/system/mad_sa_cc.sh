#!/bin/bash
# mad_sa_cc: the vendor's three examples, character for character, and a burst beyond the limits, counted
# exactly under the virtual clock.
. "$(dirname "$0")/lib/common.bash"
ini=$dir/net.ini
cat >"$ini" <<'INI'
[clock]
mode = virtual
[device mlx5_0]
ports = 2
[device mb_0]
[device mb_1]
[switch sw_0]
[link mlx5_0 sw_0]
[link mlx5_0/2 sw_0]
[link mb_0 sw_0]
[link mb_1 sw_0]
INI
mounted -o config="$ini"
shows() { (cd "$files" && grep . outstanding queued sent drops expired | xargs); }
limits() { echo "$ib/$1/mad_sa_cc/$2"; }

test_case "each port has the limits of the reference"
for at in "mlx5_0 1" "mlx5_0 2" "mb_0 1" "mb_1 1"; do
  files=$(limits $at)
  expect "drops expired max_outstanding outstanding queue_size queued sent time_sa_mad" "$(ls "$files" | xargs)" "files of $at"
  cat "$files/max_outstanding" | cmp - <(echo 16)
  echo 32 >"$files/max_outstanding"
  cat "$files/max_outstanding" | cmp - <(echo 32)
  echo 0 >"$files/drops"
  expect "0 16 20" "$(cat "$files/drops" "$files/queue_size" "$files/time_sa_mad" | xargs)" "$at: the other values"
  expect "644 644 644 644" "$(stat -c %a "$files"/{drops,max_outstanding,queue_size,time_sa_mad} | xargs)" "$at: modes"
  expect "444 444 444 444" "$(stat -c %a "$files"/{outstanding,queued,sent,expired} | xargs)" "$at: modes"
  echo 16 >"$files/max_outstanding"
done

test_case "a value out of range changes nothing and gives the reason"
files=$(limits mlx5_0 2)
for wrong in "0 max_outstanding" "1048577 max_outstanding" "15 queue_size" "1048577 queue_size" "0 time_sa_mad" \
  "10001 time_sa_mad" "-1 max_outstanding" "x max_outstanding" "1 drops" "x drops"; do
  read -r text file <<<"$wrong"
  before=$(cat "$files/$file")
  expect "Invalid argument" "$(store "$text" "$files/$file")" "$wrong"
  expect "$before" "$(cat "$files/$file")" "$wrong: the value"
  tail -n 1 "$debug/dmesg" | grep -q "mad_sa_cc/2/$file.*EINVAL" || fail "$wrong: dmesg says $(tail -n 1 "$debug/dmesg")"
done
says() { ! echo "$1" 2>/dev/null >"$files/$2" && tail -n 1 "$debug/dmesg" | sed 's/.*: \(-\{0,1\}[0-9]* is outside\)/\1/'; }
expect "1048577 is outside 1 to 1048576 (EINVAL)" "$(says 1048577 max_outstanding)" "the range without 0"
expect "10001 is outside 1 to 10000 (EINVAL)" "$(says 10001 time_sa_mad)" "the range without 0"
expect "1048577 is outside 16 to 1048576 (EINVAL)" "$(says 1048577 queue_size)" "the range"
echo 0x20 >"$files/max_outstanding" && expect 32 "$(cat "$files/max_outstanding")" "hexadecimal"
echo 040 >"$files/max_outstanding" && expect 32 "$(cat "$files/max_outstanding")" "octal"
expect 16 "$(cat "$(limits mlx5_0 1)/max_outstanding")" "the other port"
echo 16 >"$files/max_outstanding"

test_case "a burst beyond the limits is counted exactly"
# 200 requests at once, and an administrator that answers after 100 ms.
files=$(limits mb_0 1)
echo 100ms >"$debug/sa/delay"
echo "burst 200 port=mb_0 timeout=500ms" >"$debug/sa/send"
expect "outstanding:16 queued:16 sent:16 drops:168 expired:0" "$(shows)" "at once"
echo 19999999 >"$debug/clock/advance"
expect "outstanding:16 queued:16 sent:16 drops:168 expired:0" "$(shows)" "1 ns before time_sa_mad has passed"
echo 1 >"$debug/clock/advance"
expect "outstanding:16 queued:0 sent:16 drops:168 expired:16" "$(shows)" "when time_sa_mad has passed"
echo idle >"$debug/clock/advance"
expect "outstanding:0 queued:0 sent:16 drops:168 expired:16" "$(shows)" "when all is over"
for word in "answered 16" "expired 16" "refused 168"; do
  grep -qw "$word" "$debug/sa/send" || fail "sa/send says: $(cat "$debug/sa/send")"
done
echo 0 >"$files/drops"
expect "outstanding:0 queued:0 sent:16 drops:0 expired:16" "$(shows)" "drops reset"

test_case "a raised limit drains the queue at once"
files=$(limits mb_0 1)
echo "burst 100 port=mb_0 timeout=500ms" >"$debug/sa/send"
echo 1ms >"$debug/clock/advance"
expect "outstanding:16 queued:16 sent:32 drops:68 expired:16" "$(shows)" "before"
echo 64 >"$files/max_outstanding"
expect "outstanding:32 queued:0 sent:48 drops:68 expired:16" "$(shows)" "after echo 64 >max_outstanding"
echo idle >"$debug/clock/advance"
expect "outstanding:0 queued:0 sent:48 drops:68 expired:16" "$(shows)" "all answered"
grep -qw "answered 32" "$debug/sa/send" || fail "sa/send says: $(cat "$debug/sa/send")"

test_case "semantics are chosen by name, and a reset restores them"
files=$(limits mb_0 1)
echo ofed4 >"$debug/sa/semantics"
expect "16 65536 20" "$(cat "$files"/{max_outstanding,queue_size,time_sa_mad} | xargs)" "ofed4's defaults"
expect "Invalid argument" "$(store 0 "$files/max_outstanding")" "0 in ofed4"
echo ofed25 >"$debug/sa/semantics"
expect "0 65536 0" "$(cat "$files"/{max_outstanding,queue_size,time_sa_mad} | xargs)" "ofed25's defaults"
echo 1 >"$debug/reset"
expect "doc 16 16 20" "$(cat "$debug/sa/semantics" "$files"/{max_outstanding,queue_size,time_sa_mad} | xargs)" "reset"
expect "outstanding:0 queued:0 sent:0 drops:0 expired:0" "$(shows)" "counters after a reset"

test_case "an invalid burst is refused"
for wrong in "" "burst" "burst 0" "burst 1000001" "burst 1 port=nowhere" "burst 1 port=mlx5_0/3" "burst 1 timeout=x" "flood 1" "burst 1 1"; do
  expect "Invalid argument" "$(store "$wrong" "$debug/sa/send")" "sa/send '$wrong'"
done
