#!/bin/bash
# The algorithms of tools/examples in their scenarios: what each is known for, by numbers.
. "$(dirname "$0")/lib/common.bash"
examples=$(realpath "$(dirname "$ROCEFS")/../examples")

run() {  # NAME [SED-SCRIPT]
  name=$1
  sed -e "s|= \.\./\.\./build/examples|= $examples|" -e "${2:-}" "tools/scenarios/$name.ini" >"$dir/$name.ini"
  "$ROCEFS" sim "$dir/$name.ini" --out "$dir/$name" >"$dir/$name.txt" 2>"$dir/$name.err" ||
    fail "$name: $(cat "$dir/$name.err")"
}
# queue VARIANT COLUMN: octets in the queue before h0, a time-weighted mean or percentile.
queue() {
  awk -F, -v variant="$1" -v column="$2" '
    NR == 2 { for (i = 1; i <= NF; ++i) if ($i == column) at = i }
    $1 == variant && $3 == "sw_0-h0" { print $at }' "$dir/$name/queues.csv"
}
# deepest VARIANT: the largest 99th percentile of all queues.
deepest() {
  awk -F, -v variant="$1" '
    NR == 2 { for (i = 1; i <= NF; ++i) if ($i == "p99") at = i }
    $1 == variant && $at > max { max = $at } END { print max + 0 }' "$dir/$name/queues.csv"
}
# slowdowns VARIANT MIN MAX PERCENT: of flows of that size.
slowdowns() {
  awk -F, -v variant="$1" -v min="$2" -v max="$3" '$1 == variant && $6 >= min && $6 < max {print $9}' \
    "$dir/$name/flows.csv" | sort -g | awk -v part="$4" '{v[NR] = $1} END {print v[int(NR * part / 100) + 1]}'
}
# gbps VARIANT: all octets over the time to the end of the last flow.
gbps() {
  awk -F, -v variant="$1" '$1 == variant { sum += $6; if ($7 > max) max = $7 } END { print sum * 8 / max }' \
    "$dir/$name/flows.csv"
}
trace() { grep -oE 'trace [0-9a-f]+' "$dir/$name.txt" | xargs; }
holds() {  # AN AWK CONDITION, WHY
  awk "BEGIN { exit !($1) }" || fail "$name: $1: $2"
}

test_case "HPCC: short flows find queues nearly empty where DCQCN fills them"
run hpcc 's/^flows = .*/flows = 400/'
holds "$(slowdowns hpcc 0 16384 95) < 3" "it keeps no standing queue"
holds "$(slowdowns dcqcn 0 16384 95) > 1.5 * $(slowdowns hpcc 0 16384 95)" "DCQCN does: marks begin at 400 KB"
holds "$(deepest hpcc) < $(deepest dcqcn) / 4" "a window never has more than a round trip of its link"
holds "$(slowdowns hpcc 2000000 40000000 50) < 1.3 * $(slowdowns dcqcn 2000000 40000000 50)" "long flows do not pay"

test_case "Swift: the queue is the target less the round trip without a queue, and the link is full"
# 100 Gb/s are 12.5 octets a nanosecond; four times 1 us, two packets and two acknowledgements are 4.8 us.
run swift
for target in 15 30 60; do
  expected=$(((target * 1000 - 4800) * 125 / 10))
  median=$(queue target_${target}us p50)
  holds "$median > 0.95 * $expected && $median < 1.05 * $expected" "the target of $target us sets it"
  holds "$(queue target_${target}us busy) > 0.98" "the link is full"
done
holds "$(queue PFC_only p50) > 10 * $(queue target_15us p50)" "PFC alone fills the buffer"
before=$(trace)

test_case "the same seed is the same run, whatever the number of threads"
run swift 's|^class/infiniband/h{1..16}/pcc/interval_us.*|&\nclass/infiniband/h{1..16}/pcc/num_threads = 4|'
expect "$before" "$(trace)" "hashes"

test_case "TIMELY: the tail of the delay is a ninth of PFC's at most, at a rate near the line's"
# The paper's abstract: 9 times less in the 99th percentile, near line rate. The flows begin at once and end one after
# the other, so that the whole is slower than its middle.
run timely
holds "$(queue timely p99) * 9 < $(queue PFC_only p99)" "gradients see a queue before it is deep"
holds "$(gbps timely) > 0.7 * $(gbps PFC_only)" "the flows end one after the other, the last one alone"

test_case "DCTCP on CNPs: the share of marked packets is that of packets of any length"
# For the first millisecond all are marked: the share stays 1, and halves the window, with 4096 octets each, too.
cat >"$dir/marked.ini" <<INI
[sim]
until = 1ms
[topology]
kind = star
hosts = 2
rate = 10G
[knobs]
class/infiniband/h0/pcc/plugin_dir = $(realpath "$(dirname "$ROCEFS")/../examples")
class/infiniband/h0/pcc/load = 1
class/infiniband/h0/pcc/algo = dctcp
class/infiniband/h0/pcc/state = start
kernel/debug/rocefs/fabric/sw_0/ecn/enable = 1
kernel/debug/rocefs/fabric/sw_0/ecn/kmin = 0
kernel/debug/rocefs/fabric/sw_0/ecn/kmax = 0
class/net/*/ecn/roce_np/min_time_between_cnps = 0
kernel/debug/rocefs/links/sw_0-h1/rate = 1G
[flows]
a = write h0 h1 size=1M count=100
[sample]
interval = 100us
w = kernel/debug/rocefs/traffic/a/window
[variant small]
[variant MTU]
class/infiniband/h0/pcc/params/packet = 4096
INI
"$ROCEFS" sim "$dir/marked.ini" --out "$dir/marked" >"$dir/marked.txt" 2>&1 || fail "$(cat "$dir/marked.txt")"
windows() { awk -F, -v variant="$1" '$1 == variant {print $3}' "$dir/marked/series.csv" | head -n 10 | xargs; }
expect "$(windows MTU)" "$(windows small)" "the windows"

test_case "a value of a parameter that makes no sense is refused; a maximum holds below its minimum"
mounted -o clock=virtual
pcc=$ib/mb_0/pcc
realpath "$examples" >"$pcc/plugin_dir"
echo 1 >"$pcc/load"
taken() { (echo "$2" >"$pcc/params/$1") 2>/dev/null; }
while read -r algorithm name least most wrong; do
  echo "$algorithm" >"$pcc/algo"
  for value in $least $most; do taken "$name" "$value" || fail "$algorithm: $name=$value is refused"; done
  for value in $wrong; do ! taken "$name" "$value" || fail "$algorithm: $name=$value is taken"; done
done <<'RANGES'
swift ai 0 1e6 -1 1e300 nan
swift beta 0 1 -100 1.1
swift min_cwnd 0.001 1e6 0 1e300
swift max_cwnd 0.001 1e6 -5 0 1e300
timely delta_mbps 0 1e6 -1e9 1e300
timely min_mbps 0.1 1e6 0 -1 1e300
timely window 256 4294967295 0
dctcp min_window 256 1073741824 0 4294967295
dctcp max_window 256 1073741824 0 4294967295
RANGES
# Largest window of a flow whose minimum is above the maximum.
echo "f write mb_0 mb_1 size=64K count=100000000" >"$debug/traffic/start"
while read -r algorithm least most octets; do
  echo "$algorithm" >"$pcc/algo"
  [ "$(cat "$pcc/state")" = active ] || echo start >"$pcc/state"
  echo "${least#*=}" >"$pcc/params/${least%=*}"
  echo "${most#*=}" >"$pcc/params/${most%=*}"
  echo 5ms >"$debug/clock/advance"
  expect "$octets" "$(cat "$debug/traffic/f/window")" "$algorithm: the window with $least and $most"
done <<'WINDOWS'
swift min_cwnd=64 max_cwnd=8 8192
dctcp min_window=65536 max_window=8192 8192
WINDOWS
unmounted

test_case "DCTCP on CNPs: the queue stays at the threshold of marks, and the link is full"
# Alizadeh et al., section 3.3: the queue is at most K + N packets; a packet has 1,100 octets.
run dctcp
holds "$(queue '' p50) > 0.8 * 97500 && $(queue '' p50) < 97500 + 20 * 1100" "K, and K + N"
holds "$(queue '' p95) < 97500 + 2 * 20 * 1100" "at most a round of CNPs late"
holds "$(queue '' busy) > 0.98" "the link is full"
