#!/bin/bash
# Devices whose directories nobody has listed: a reset restores them, and a reset and a takeover make no files of them.
. "$(dirname "$0")/lib/common.bash"
printf '[topology]\nkind = star\nhosts = 100\n' >"$dir/many.ini"
rss_kb() { awk '$1 == "VmRSS:" {print $2}' "/proc/$(worker_pid)/status"; }
# A mount whose files are all made takes four times the memory of one with none.
expect_small() {  # WHAT
  local now
  now=$(rss_kb)
  echo "REPORT $1: $now kB, $before kB before"
  [ "$now" -lt $((2 * before)) ] || fail "$1: $now kB, $before kB before"
}
mounted -o config="$dir/many.ini"
before=$(rss_kb)

test_case "a reset clears counters and restores knobs of devices that nobody has looked at"
echo "f write h7 h8 size=64K count=20" >"$debug/traffic/start"
await state_is f done
echo "cut down h9-sw_0" >"$debug/inject/add"
expect ok "$(store 1 "$debug/reset")" reset
expect_small "after a reset"
for host in h7 h8; do
  port=$ib/$host/ports/1
  expect 0 "$(cat "$port"/counters/* "$port"/hw_counters/[!l]* "$port"/cm_*/* | sort -u)" "counters of $host"
  expect 0 "$(cat "$debug/links/$host-sw_0"/{packets,bytes} "$debug/links/sw_0-$host"/{packets,bytes} | sort -u)" "links of $host"
done
expect up "$(cat "$debug/links/h9-sw_0/state")" "the link that a fault took down"
expect "4: ACTIVE" "$(cat "$ib/h9/ports/1/state")" "its port"

test_case "a takeover serves what was looked up before, and makes no more files"
cd "$(readlink -f "$ib/h7/ports/1")"
exec {counter}<hw_counters/rx_write_requests
kill_worker
expect "4: ACTIVE" "$(cat state)" "a file beside the working directory"
expect 0 "$(cat <&"$counter")" "an open file"
expect "h7 emulated RoCEv2 HCA" "$(cat ../../node_desc)" "a file above"
expect_small "after a takeover"
exec {counter}<&-
cd /
