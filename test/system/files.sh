#!/bin/bash
# Real files through the fabric: awkward sizes, both operations, several queue pairs, with loss; OUT keeps
# its contents until the new file is complete.
. "$(dirname "$0")/lib/common.bash"
mounted -o clock=virtual,seed=3
cd "$dir"
echo 0.03 >"$debug/links/mb_0-sw_0/loss"

send() {  # BYTES OPTIONS…: sends a file of that size and compares
  local size=$1
  shift
  head -c "$size" /dev/urandom >in
  rm -f out
  echo "f $1 mb_0 mb_1 file=in out=out timeout=6 ${*:2}" >"$debug/traffic/start"
  echo idle >"$debug/clock/advance"
  expect "done" "$(cat "$debug/traffic/f/state")" "$size bytes, $*"
  cmp in out || fail "$size bytes, $*"
  expect "$size" "$(value bytes "$debug/traffic/f/result")" "bytes"
  expect 0 "$(value mismatched "$debug/traffic/f/result")" "mismatched"
  echo 1 >"$debug/traffic/f/stop"
}

test_case "files of awkward sizes arrive by WRITE and SEND"
for op in write send; do
  send 0 $op
  send 1 $op
  send 4095 $op
  send 4096 $op size=4096
  send 4097 $op size=4096 mtu=256
  send 100001 $op size=333 qps=3
  send 1000003 $op size=1M qps=2 window=4
  send 300000 $op size=64K mtu=1024 gid=0
done

test_case "a flow that fails or is refused leaves OUT unchanged"
echo precious >out
echo 1 >"$debug/links/mb_0-sw_0/loss"
echo "f write mb_0 mb_1 file=in out=out timeout=3 retry=0" >"$debug/traffic/start"
echo idle >"$debug/clock/advance"
expect "failed: transport retry count exceeded" "$(cat "$debug/traffic/f/state")" "all lost"
expect precious "$(cat out)" "OUT after a failure"
expect "Invalid argument" "$(store "g write mb_0 mb_1 file=in out=out gid=7" "$debug/traffic/start")" "gid=7"
expect precious "$(cat out)" "OUT after a refusal"
expect "Is a directory" "$(store "g write mb_0 mb_1 file=in out=$dir" "$debug/traffic/start")" "out="

test_case "IN may be truncated under way, or be OUT itself"
echo 0 >"$debug/links/mb_0-sw_0/loss"
sum=$(sha256sum <in)
echo "h write mb_0 mb_1 file=in out=in" >"$debug/traffic/start"
: >in
echo idle >"$debug/clock/advance"
expect "$sum" "$(sha256sum <in)" "OUT that is IN"
