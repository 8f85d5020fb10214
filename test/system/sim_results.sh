#!/bin/bash
# rocefs sim --out: summary.json, links.csv and timing.csv say of a run what the counters do.
. "$(dirname "$0")/lib/common.bash"
needs python3
sim() { "$ROCEFS" sim "$@"; }
# of FILE EXPRESSION: of a summary.json, as the runs `r` by variant and the whole as `s`.
of() {
  python3 -c 'import json, sys
s = json.load(open(sys.argv[1]))
r = {run["variant"]: run for run in s["runs"]}
print(eval(sys.argv[2]))' "$1" "$2"
}
# link VARIANT LINK COLUMN
link() {
  awk -F, -v variant="$1" -v link="$2" -v column="$3" '
    NR == 2 { for (i = 1; i <= NF; ++i) if ($i == column) at = i }
    $1 == variant && $2 == link { print $at }' "$dir/out/links.csv"
}
# queue VARIANT LINK COLUMN: of the one queue before that link.
queue() {
  awk -F, -v variant="$1" -v link="$2" -v column="$3" '
    NR == 2 { for (i = 1; i <= NF; ++i) if ($i == column) at = i }
    $1 == variant && $3 == link { print $at }' "$dir/out/queues.csv"
}

# Two hosts write 16 MiB each to a third, whose link they fill, on a switch with PFC and ECN.
cat >"$dir/two.ini" <<'INI'
[sim]
title = two to one
[clock]
seed = 4
[topology]
kind = star
hosts = 3
rate = 100G
[flows]
f{1..2} = write h{1..2} h0 size=64K count=256 window=4096
[knobs]
kernel/debug/rocefs/fabric/sw_0/ecn/kmax = 400K
kernel/debug/rocefs/fabric/sw_0/ecn/kmin = 100K
kernel/debug/rocefs/fabric/sw_0/ecn/enable = 1
[inject]
lost = drop h1-sw_0 opcode=data skip=3
[variant PFC]
[variant no_PFC]
kernel/debug/rocefs/fabric/sw_0/pfc/enable = 0
kernel/debug/rocefs/links/sw_0-h0/buffer = 4M
[variant DCQCN]
class/net/enp172s0/ecn/roce_rp/enable/0 = 1
class/net/enp3s0/ecn/roce_rp/enable/0 = 1
INI
sim "$dir/two.ini" --out "$dir/out" >"$dir/two.txt" 2>"$dir/two.err" || fail "$(cat "$dir/two.err")"
sim "$dir/two.ini" --out "$dir/again" >/dev/null 2>&1

test_case "the summary is the table's, and the same for the same seed"
cmp "$dir/out/summary.json" "$dir/again/summary.json" || fail "another summary"
cmp "$dir/out/links.csv" "$dir/again/links.csv" || fail "other links"
expect "two.ini, seed 4, configuration $(of "$dir/out/summary.json" 's["configuration"]')" "$(sed -n '1s/.*: //p' "$dir/two.txt")" "the origin"
expect "two.ini 4 False" "$(of "$dir/out/summary.json" 's["file"], r["PFC"]["seed"], s["partial"]' | tr -d "(),'")" "the summary's origin"
for variant in PFC no_PFC; do
  expect "$(sed -n "/^# $variant/,/trace/s/.*trace //p" "$dir/two.txt")" "$(of "$dir/out/summary.json" "r['$variant']['trace_hash']")" "the trace"
  expect "$(awk -F, -v variant=$variant '$1 == variant && $7 > max {max = $7} END {print max}' "$dir/out/flows.csv")" \
    "$(of "$dir/out/summary.json" "int(r['$variant']['sizes'][-1]['fct_ns']['max'])")" "the largest FCT"
  expect "{'done': 2}" "$(of "$dir/out/summary.json" "r['$variant']['flows']")" "the states"
done

test_case "PAUSE and loss are where they happen"
expect 0 "$(of "$dir/out/summary.json" "r['PFC']['drops']['dropped'] + r['no_PFC']['pause_frames']")" "drops with PFC, and PAUSE without"
[ "$(of "$dir/out/summary.json" "min(r['no_PFC']['drops']['dropped'], r['PFC']['pause_frames'], r['PFC']['xmit_wait_ns'], r['DCQCN']['ce_marked'], r['DCQCN']['cnps'])")" -gt 0 ] || fail "too little: $(cat "$dir/out/summary.json")"
expect "$(of "$dir/out/summary.json" "r['DCQCN']['ce_marked']")" "$(link DCQCN sw_0-h0 ce_marked)" "all marks are by one queue"
expect "$(link PFC h1-sw_0 pause_sent)" "$(link PFC h1-sw_0 pause_received)" "PAUSE sent and received"
expect "$(of "$dir/out/summary.json" "r['no_PFC']['drops']['dropped']")" "$(link no_PFC sw_0-h0 dropped)" "all drops are at one queue"
# A host with one priority waits whenever that is paused, but for the packet that it has begun.
for host in h1 h2; do
  paused=$(link PFC $host-sw_0 paused_ns) waited=$(link PFC $host-sw_0 xmit_wait_ns)
  [ "$waited" -gt 0 ] && [ "$paused" -ge "$waited" ] && [ "$paused" -lt $((waited + waited / 10)) ] || fail "$host was paused for $paused ns and waited for $waited ns"
done
expect "$(of "$dir/out/summary.json" "r['PFC']['paused_ns']")" \
  "$(awk -F, '$1 == "PFC" {ns += $14} END {print ns}' "$dir/out/links.csv")" "the time paused"
expect "0 0" "$(of "$dir/out/summary.json" "r['no_PFC']['paused_ns']") $(link PFC sw_0-h0 paused_ns)" "the time paused without PFC, and of a link that nobody paused"
expect "{'pfc_headroom': 0, 'ingress_buffer': 0, 'switch_buffer': 0, 'egress_buffer': $(link no_PFC sw_0-h0 dropped)}" \
  "$(of "$dir/out/summary.json" "r['no_PFC']['lacked_room']")" "the room that dropped packets lacked"
# All that the switch stores, but for acknowledgements, has come from h1 and h2 and waits for h0.
both=$(($(link PFC h1-sw_0 ingress_peak) + $(link PFC h2-sw_0 ingress_peak)))
[ "$both" -ge "$(link PFC sw_0-h0 queue_peak)" ] || fail "from both ports: $both"
expect "$(awk -F, '$1 == "PFC" && $16 > max {max = $16} END {print max}' "$dir/out/links.csv")" "$(of "$dir/out/summary.json" "r['PFC']['ingress_peak']")" "the most from one port"
q=$(link no_PFC sw_0-h0 queue_peak)
[ "$q" -le $((4 << 20)) ] && [ "$q" -gt $(((4 << 20) - 5000)) ] || fail "the queue was full: $q"
awk -v u="$(link PFC sw_0-h0 utilization)" 'BEGIN {exit !(u > 0.9 && u <= 1)}' || fail "the full link: $(link PFC sw_0-h0 utilization)"
awk -v u="$(link PFC h1-sw_0 utilization)" 'BEGIN {exit !(u > 0.4 && u < 0.6)}' || fail "half of it: $(link PFC h1-sw_0 utilization)"
expect "" "$(link PFC sw_0-h0 xmit_wait_ns)$(link PFC sw_0-h0 ingress_peak)$(link PFC h1-sw_0 queue_peak)" "counters that a direction does not have"
expect "$(of "$dir/out/summary.json" "r['PFC']['packet_hops']")" \
  "$(awk -F, '$1 == "PFC" {hops += $5 - $7} END {print hops}' "$dir/out/links.csv")" "packet-hops"

test_case "the length of queues over time is in queues.csv"
cmp "$dir/out/queues.csv" "$dir/again/queues.csv" || fail "other queues"
expect "variant,queue,link,priority,mean,p50,p95,p99,p99.9,max,busy,paused_ns,ce_marked,dropped" "$(sed -n 2p "$dir/out/queues.csv")" "the columns"
expect "sw_0/ports/1/queue/0 0" "$(queue PFC sw_0-h0 queue) $(queue PFC sw_0-h0 priority)" "the queue before h0"
for variant in PFC no_PFC DCQCN; do
  expect "$(link $variant sw_0-h0 queue_peak) $(link $variant sw_0-h0 dropped) $(link $variant sw_0-h0 ce_marked)" \
    "$(queue $variant sw_0-h0 max) $(queue $variant sw_0-h0 dropped) $(queue $variant sw_0-h0 ce_marked)" "the maximum, drops and marks of $variant"
  last=0
  for column in p50 p95 p99 p99.9 max; do
    q=$(queue $variant sw_0-h0 $column)
    [ "$q" -ge "$last" ] || fail "$column of $variant is less than the one before: $q"
    last=$q
  done
  awk -v mean="$(queue $variant sw_0-h0 mean)" -v most="$last" 'BEGIN {exit !(mean > 0 && mean < most)}' || fail "mean of $variant"
  expect "sw_0/ports/1/queue/0" "$(of "$dir/out/summary.json" "r['$variant']['queues']['worst']")" "the worst queue of $variant"
  expect "$(queue $variant sw_0-h0 p99)" "$(of "$dir/out/summary.json" "int(r['$variant']['queues']['worst_octets']['p99'])")" "its percentile"
done
# Marking keeps the queue of DCQCN shorter than that of PFC, most of the time.
[ "$(queue DCQCN sw_0-h0 p50)" -lt "$(queue PFC sw_0-h0 p50)" ] || fail "the median with DCQCN: $(cat "$dir/out/queues.csv")"
awk -v busy="$(queue PFC sw_0-h0 busy)" 'BEGIN {exit !(busy > 0.9 && busy <= 1)}' || fail "the part of the time with packets"
# The mean over all queues is that of their means.
expect "$(awk -F, '$1 == "PFC" {sum += $5; ++n} END {printf "%.3f", sum / n}' "$dir/out/queues.csv")" "$(of "$dir/out/summary.json" "'%.3f' % r['PFC']['queues']['octets']['mean']")" "the mean of all"
expect "$(of "$dir/out/summary.json" "'%.0f' % r['PFC']['queues']['worst_octets']['p99']")" \
  "$(grep -oE '<td>PFC</td><td>4</td><td>sw_0/ports/1/queue/0</td>(<td>[0-9]+</td>)+' "$dir/out/report.html" | grep -oE '[0-9]+</td>' | tail -n 3 | head -n 1 | grep -oE '^[0-9]+')" "in the report"

test_case "CPU time is in a file of its own"
expect "variant,seed,cpu_seconds,packet_hops,packet_hops_per_cpu_second,events,events_per_cpu_second" "$(sed -n 2p "$dir/out/timing.csv")" "the columns"
expect "PFC,4 no_PFC,4 DCQCN,4" "$(sed -n '3,$p' "$dir/out/timing.csv" | cut -d , -f 1,2 | xargs)" "the lines"
# CPU time is rounded to a millisecond.
awk -F, 'NR > 2 {
  hops = $4 / $5 - $3; events = $6 / $7 - $3
  if (hops < -0.001 || hops > 0.001 || events < -0.001 || events > 0.001) exit 1
}' "$dir/out/timing.csv" || fail "the rates are not the counts by the CPU time: $(cat "$dir/out/timing.csv")"
grep -qE '^[0-9.]+ s of CPU, [0-9.]+ M packet-hops and [0-9.]+ M events per CPU second$' "$dir/two.err" || fail "the line on stderr: $(cat "$dir/two.err")"

test_case "the events of the engine are counted"
expect "$(of "$dir/out/summary.json" '" ".join(str(run["events"]) for run in s["runs"])')" "$(sed -n '3,$p' "$dir/out/timing.csv" | cut -d , -f 6 | xargs)" "in timing.csv"
[ "$(of "$dir/out/summary.json" "min(run['events'] - run['packet_hops'] for run in s['runs'])")" -ge 0 ] || fail "less than one for a packet-hop"

test_case "a store that removes flows takes nothing from those that have ended, nor what others have moved"
for store in reset=1 traffic/b/stop=1; do
  cat >"$dir/removed.ini" <<INI
[topology]
kind = star
hosts = 4
rate = 100G
[at]
300us = kernel/debug/rocefs/$store
[flows]
b = write h0 h1 size=64K count=10
c = write h2 h3 size=64K count=100
d = write h2 h3 size=64K count=10 start=500us
INI
  status=0
  sim "$dir/removed.ini" --out "$dir/removed" >"$dir/removed.txt" 2>&1 || status=$?
  if [ "$store" = reset=1 ]; then wanted='1 b"done" c"removed" d"done"'; else wanted='0 b"done" c"done" d"done"'; fi
  expect "$wanted" "$status $(awk -F, 'NR > 2 {print $2 $13}' "$dir/removed/flows.csv" | sort | xargs -d '\n')" "the flows after $store: $(cat "$dir/removed.txt")"
  expect 655360 "$(awk -F, '$2 == "b" {print $6}' "$dir/removed/flows.csv")" "octets of the flow that had ended"
  # 300 us at 100 Gb/s are 3.75 MB at most, in messages of 64 KiB.
  moved=$(awk -F, '$2 == "c" {print $6}' "$dir/removed/flows.csv")
  [ "$store" != reset=1 ] || { [ "$moved" -ge 3000000 ] && [ "$moved" -le 3750000 ]; } || fail "c has moved $moved octets"
done

test_case "flows.csv has flows in the order in which they end"
cat >"$dir/order.ini" <<'INI'
[topology]
kind = star
hosts = 4
rate = 100G
[flows]
long = write h0 h1 size=64K count=10
short = write h2 h3 size=1K
later = write h2 h3 size=1K start=200us
last = write h0 h1 size=64K start=200us
late = write h2 h3 size=1K start=201us
INI
sim "$dir/order.ini" --out "$dir/order" >/dev/null 2>"$dir/said" || fail "$(cat "$dir/said")"
expect "short long later late last" "$(awk -F, 'NR > 2 {print $2}' "$dir/order/flows.csv" | xargs)" "the order: $(cat "$dir/order/flows.csv")"
