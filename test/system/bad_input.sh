#!/bin/bash
# Invalid input gets the right errno, changes nothing, and is explained in dmesg.
. "$(dirname "$0")/lib/common.bash"
mounted -o clock=virtual

refused() {  # FILE TEXT MESSAGE REASON
  local before=none
  readable() { [ -n "$(find "$1" -perm /444)" ]; }
  if readable "$1"; then before=$(cat "$1"); fi
  expect "$3" "$(store "$2" "$1")" "echo '$2' > ${1#"$mnt"/}"
  if readable "$1"; then expect "$before" "$(cat "$1")" "value after '$2'"; fi
  last_dmesg_says "$4"
}
einval="Invalid argument" erange="Numerical result out of range"
link=$debug/links/mb_0-sw_0
start=$debug/traffic/start

test_case "invalid values of a link are refused"
refused "$link/rate" fast "$einval" "'fast'"
refused "$link/rate" -1 "$einval" "'-1'"
refused "$link/rate" 1 "$einval" "outside 1M to 10T"
refused "$link/rate" 99999999999999999999 "$erange" "too large"
refused "$link/rate" 99999999T "$erange" "too large"
refused "$link/delay" 5parsec "$einval" "'5parsec'"
refused "$link/delay" 0.5 "$einval" "whole number"
refused "$link/delay" 11s "$einval" "outside 0 to 10s"
refused "$link/loss" 1.1 "$einval" "outside 0 to 1"
refused "$link/loss" nan "$einval" "probability"
refused "$link/loss" "" "$einval" "probability"
refused "$link/state" sideways "$einval" "down up"
refused "$link/buffer" 12Q "$einval" "'12Q'"

test_case "invalid values of the clock are refused"
refused "$debug/clock/advance" soon "$einval" "'soon'"
refused "$debug/clock/advance" "idle soon" "$einval" "'soon'"
refused "$debug/clock/stop" 2 "$einval" "only 1"
refused "$debug/clock/dilation" 5 "Operation not supported" "virtual"

test_case "invalid flows are refused"
refused "$start" "" "$einval" "NAME OP FROM TO"
refused "$start" "f fly mb_0 mb_1" "$einval" "unknown op 'fly'"
refused "$start" "f write mb_0 mb_9" "$einval" "no device mb_9"
refused "$start" "f write mb_0 mb_1 speed=9" "$einval" "unknown key speed"
refused "$start" "f write mb_0 mb_1 qps=0" "$einval" "qps=0 is outside"
refused "$start" "f write mb_0 mb_1 size=1 size=2" "$einval" "given twice"
refused "$start" "f write mb_0 mb_1 mtu=1500" "$einval" "mtu=1500: 256, 512, 1024, 2048 or 4096 is wanted"
refused "$start" "f write mb_0 mb_1 gid=5" "$einval" "gid=5 is empty"
refused "$start" "f write mb_0 mb_1 qps=4096 size=1G" "$einval" "memory"
refused "$start" "f write mb_0 mb_1 out=/tmp/x" "$einval" "goes with file="
refused "$start" "../f write mb_0 mb_1" "$einval" "cannot be a flow's name"
refused "$start" "start write mb_0 mb_1" "$einval" "cannot be a flow's name"

test_case "files that cannot be sent or captured to are refused"
refused "$start" "f write mb_0 mb_1 file=/nonexistent" "No such file or directory" "/nonexistent"
refused "$start" "f write mb_0 mb_1 file=/tmp" "Is a directory" "/tmp"
refused "$start" "f write mb_0 mb_1 file=/dev/zero" "$einval" "not a regular file"
refused "$start" "f write mb_0 mb_1 file=$debug/seed" "$einval" "this mount itself"
mkfifo "$dir/fifo"
refused "$start" "f write mb_0 mb_1 file=$dir/fifo" "$einval" "not a regular file"
truncate -s 1073741825 "$dir/huge"
refused "$start" "f write mb_0 mb_1 file=$dir/huge" "File too large" "more than 1073741824"
for word in 0 stop OFF on ""; do
  refused "$debug/pcap" "$word" "$einval" "'$word': a path, with a slash or a dot, or off is wanted"
  expect off "$(cat "$debug/pcap")" "pcap after $word"
done
echo "$dir/taken.pcap" >"$debug/pcap"
expect "Device or resource busy" "$(store "$dir/other.pcap" "$debug/pcap")" "a second capture"
last_dmesg_says "capturing to $dir/taken.pcap already: off ends that"
echo off >"$debug/pcap"
refused "$debug/pcap" "/nonexistent/cap" "No such file or directory" "/nonexistent/cap"
refused "$debug/pcap" "$debug/seed" "$einval" "this mount itself"
refused "$start" "f ud mb_0 mb_1 mtu=256 size=4096" "$einval" "a datagram holds at most the MTU, 256 bytes"
refused "$start" "f write mb_0 mb_1 file=/proc/version" "$einval" "says that it is 0 bytes long, and is longer"

test_case "refused flows start nothing, and a name is used once"
expect "start" "$(ls "$debug/traffic")" "nothing started"
echo "f write mb_0 mb_1" >"$start"
refused "$start" "f write mb_0 mb_1" "File exists" "a flow f already"
refused "$debug/traffic/f/stop" maybe "$einval" "only 1"

test_case "a log line cannot be forged"
# dash does not print the reason of a refusal, so dmesg must.
dash -c 'echo "x
[    0.000000] forged" > "$1"' dash "$link/rate" 2>/dev/null && fail "dash wrote it"
grep -q '^\[ *0.000000\] forged' "$debug/dmesg" && fail "a forged line in dmesg"

test_case "the log is UTF-8, whatever is stored"
refused "$link/rate" $'a\xff\xc3b\xc3\xa9\xed\xa0\x80' "$einval" "'a??bé???'"
iconv -f UTF-8 -t UTF-8 < <(cat "$debug/dmesg") >/dev/null || fail "the log is not UTF-8"

test_case "a flow that fails gives the reason"
echo 1 >"$link/loss"
echo "lost write mb_0 mb_1 timeout=3 retry=1" >"$start"
echo idle >"$debug/clock/advance"
expect "failed: transport retry count exceeded" "$(cat "$debug/traffic/lost/state")" "a lost flow"
echo "hopeless write mb_0 mb_1 timeout=0" >"$start"
expect "Connection timed out" "$(store "idle 5s" "$debug/clock/advance")" "idle gives up"

test_case "the real clock cannot be advanced"
mounted
expect "Operation not supported" "$(store 5ms "$debug/clock/advance")" "advance under the real clock"
expect ok "$(store 400 "$debug/clock/dilation")" "dilation"
expect 400 "$(cat "$debug/clock/dilation")" "dilation"
expect "$einval" "$(store 0 "$debug/clock/dilation")" "dilation 0"
