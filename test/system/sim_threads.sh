#!/bin/bash
# rocefs sim --threads: one run on several threads, with the same results for any number of them; and
# what cannot run in regions is refused.
. "$(dirname "$0")/lib/common.bash"
sim() { "$ROCEFS" sim "$@"; }
# Hashes of a run's files, but for CPU times.
files_of() { (cd "$dir/$1" && find . -type f ! -name timing.csv -exec sha256sum {} + | sort -k 2); }
# 80 switches: 5 regions.
cat >"$dir/loads.ini" <<'INI'
[topology]
kind = fat-tree
k = 8
rate = 100G
reconverge = 20us
[load web]
pattern = poisson
load = 0.5
cdf = websearch
flows = 200
[load fan]
pattern = incast
senders = 20
hosts = h{0..63}
size = 64K
rounds = 3
interval = 300us
[flows]
f = write h0 h127 size=64K count=20 start=50us
r = read h1 h126 size=64K count=20 start=60us verify=on
[sample]
interval = 100us
queue = kernel/debug/rocefs/fabric/edge_0_0/ports/1/queue/0/bytes
sent = kernel/debug/rocefs/links/agg_0_0-core_0/bytes
[knobs]
kernel/debug/rocefs/fabric/*/ecn/enable = 1
kernel/debug/rocefs/fabric/*/buffer/size = 200K
class/infiniband/*/device/net/*/ecn/roce_rp/enable/0 = 1
kernel/debug/rocefs/links/agg_7_0-core_0/loss = 0.01
[at]
200us = kernel/debug/rocefs/links/agg_1_0-core_1/delay=300ns kernel/debug/rocefs/links/core_1-agg_1_0/delay=300ns
300us = kernel/debug/rocefs/links/agg_2_1-core_5/state=down kernel/debug/rocefs/links/core_5-agg_2_1/state=down
INI

test_case "any number of threads gives the same files"
for threads in 1 2 5; do
  sim --threads $threads --out "$dir/$threads" "$dir/loads.ini" >"$dir/$threads.txt" 2>"$dir/$threads.err" || fail "$threads threads: $(cat "$dir/$threads.err")"
  grep -q "; 5 regions on $threads threads, " "$dir/$threads.err" || fail "the regions: $(cat "$dir/$threads.err")"
  expect "$(cat "$dir/1.txt")" "$(cat "$dir/$threads.txt")" "the table of $threads threads"
  expect "$(files_of 1)" "$(files_of $threads)" "the files of $threads threads"
done
grep -q '^262 of 262 flows done' "$dir/1.txt" || fail "the flows: $(cat "$dir/1.txt")"
awk -F, 'NR > 2 {end = $5 + $8; if ($1 != load && end < last) bad = 1; last = end} END {exit bad}' "$dir/1/flows.csv" || fail "flows.csv is not in the order of ends"

test_case "a recording, which stops the run to look at it, changes nothing"
# Retransmissions that arrive at queue pairs of flows that have ended.
cat >"$dir/late.ini" <<'INI'
[topology]
kind = fat-tree
k = 8
rate = 100G
delay = 3us
[sim]
until = 1ms
[flows]
a = write h0 h127 size=64K count=3 timeout=2 retry=7
b = write h1 h100 size=32K count=3 timeout=2 retry=7 start=1us
c = read h2 h90 size=64K count=3 timeout=2 retry=7 start=2us
[sample]
interval = 300ns
INI
sim --threads 2 --out "$dir/unseen" "$dir/late.ini" >"$dir/unseen.txt" 2>&1 || fail "$(cat "$dir/unseen.txt")"
sim --threads 2 --out "$dir/seen" --view "$dir/late.ini" >"$dir/seen.txt" 2>&1 || fail "$(cat "$dir/seen.txt")"
grep -q 'retransmitted' "$dir/unseen/flows.csv" || fail "the columns: $(head -n 2 "$dir/unseen/flows.csv")"
expect "$(grep trace "$dir/unseen.txt")" "$(grep trace "$dir/seen.txt")" "the table"
expect "$(files_of unseen | grep -v report.html)" "$(files_of seen | grep -v "report.html\|view.jsonl")" "the files"

test_case "switches at both ends of a cable count what overflows"
cat >"$dir/drops.ini" <<'INI'
[topology]
kind = fat-tree
k = 8
rate = 100G
[sim]
until = 1ms
[load p]
pattern = permutation
size = 20M
[knobs]
kernel/debug/rocefs/links/agg_*-core_*/rate = 60G
kernel/debug/rocefs/links/agg_*-core_*/buffer = 9K
kernel/debug/rocefs/links/core_*-agg_*/rate = 10G
kernel/debug/rocefs/fabric/core_*/buffer/size = 40K
INI
for threads in 1 5; do
  sim --threads $threads --out "$dir/drops$threads" "$dir/drops.ini" >"$dir/drops$threads.txt" 2>&1 || true  # flows still run
done
expect "$(files_of drops1)" "$(files_of drops5)" "the files"
awk -F, 'NR == 2 {for (i = 1; i <= NF; ++i) at[$i] = i} NR > 2 {sum += $at["overflowed"]} END {exit !(sum > 1000)}' "$dir/drops1/links.csv" || fail "nothing overflowed: $(head -n 3 "$dir/drops1/links.csv")"

test_case "PFC that is turned off between events resumes at once"
cat >"$dir/pfc.ini" <<'INI'
[topology]
kind = fat-tree
k = 8
rate = 100G
[sim]
until = 4ms
[flows]
a{0..7} = write h{0..7} h127 size=1M count=4 timeout=20
[knobs]
kernel/debug/rocefs/links/agg_7_*-edge_7_3/rate = 5M
kernel/debug/rocefs/fabric/agg_7_*/buffer/size = 1M
kernel/debug/rocefs/fabric/agg_7_*/pfc/headroom = 10K
[at]
1234567ns = kernel/debug/rocefs/fabric/agg_7_*/pfc/enable=0
INI
paused() { awk -F, 'NR == 2 {for (i = 1; i <= NF; ++i) at[$i] = i} NR > 2 && $0 ~ /core_[0-9]+-agg_7/ {print $2, int($at["paused_ns"] / 50000)}' "$dir/$1/links.csv"; }
sim --out "$dir/pfc0" "$dir/pfc.ini" >"$dir/pfc0.txt" 2>&1 || true
sim --threads 2 --out "$dir/pfc2" "$dir/pfc.ini" >"$dir/pfc2.txt" 2>&1 || true
expect "$(paused pfc0)" "$(paused pfc2)" "the pauses in units of 50 us"
paused pfc0 | grep -q ' 2[0-9]$' || fail "no pause of a millisecond: $(paused pfc0)"

test_case "a network of one region ends with its flows"
cat >"$dir/star.ini" <<'INI'
[topology]
kind = star
hosts = 8
[flows]
f = write h0 h1 size=64K count=4
[at]
1ms = kernel/debug/rocefs/links/h0-sw_0/loss=0.5
INI
sim --threads 4 "$dir/star.ini" >"$dir/star.txt" 2>&1 || fail "$(cat "$dir/star.txt")"
grep -q 'has not come due: the run ended at' "$dir/star.txt" || fail "the run went on: $(cat "$dir/star.txt")"

test_case "PFC pauses, losses and a cable that goes down are among them"
awk -F, 'NR == 2 {for (i = 1; i <= NF; ++i) at[$i] = i} NR > 2 {pauses += $at["paused_ns"]; lost += $at["lost"]} END {exit !(pauses > 0 && lost > 0)}' "$dir/1/links.csv" || fail "links.csv: $(head -n 3 "$dir/1/links.csv")"

test_case "flows that meet nobody take the time that they take without threads"
cat >"$dir/alone.ini" <<'INI'
[topology]
kind = fat-tree
k = 8
rate = 100G
[flows]
write = write h0 h127 size=64K count=20
read = read h20 h90 size=64K count=20
INI
sim --out "$dir/whole" "$dir/alone.ini" >"$dir/whole.txt" 2>&1 || fail "$(cat "$dir/whole.txt")"
sim --threads 2 --out "$dir/regions" "$dir/alone.ini" >"$dir/regions.txt" 2>&1 || fail "$(cat "$dir/regions.txt")"
expect "$(cat "$dir/whole/flows.csv")" "$(cat "$dir/regions/flows.csv")" "flows.csv"

test_case "what needs the order of all events is refused, with its line"
refused() {  # REASON, lines of the ini
  { printf '[topology]\nkind = fat-tree\nk = 8\n'; printf '%s\n' "${@:2}"; } >"$dir/bad.ini"
  local status=0
  sim --threads 2 "$dir/bad.ini" >"$dir/bad.txt" 2>"$dir/bad.err" || status=$?
  expect 2 "$status" "the status: $(cat "$dir/bad.err")"
  expect "rocefs: $dir/bad.ini:$1" "$(cat "$dir/bad.err")" "the reason"
}
flow='f = write h0 h1 count=1'
refused "5: f: op=send: with --threads, flows write or read" '[flows]' 'f = send h0 h1'
refused "5: [load a]: its flows wait for each other: not with --threads" '[load a]' 'pattern = ring-allreduce' 'size = 1M'
refused "7: x: faults find their packets in the order of all: not with --threads" '[flows]' "$flow" '[inject]' 'x = drop link=h0-edge_0_0 psn=1'
refused " NPCC of edge_0_0 is on: not with --threads" '[flows]' "$flow" '[knobs]' 'kernel/debug/rocefs/fabric/edge_0_0/ports/1/npcc/enable = 1'
refused " capture of h0-edge_0_0 is on: not with --threads" '[flows]' "$flow" '[knobs]' 'kernel/debug/rocefs/links/h0-edge_0_0/capture = 1'
refused " a cable between two switches has no delay: not with --threads" '[flows]' "$flow" '[knobs]' 'kernel/debug/rocefs/links/edge_0_0-agg_0_0/delay = 0'
refused " PCC runs on h3: not with --threads" '[flows]' "$flow" '[knobs]' 'class/infiniband/h3/pcc/algo = dcqcn' 'class/infiniband/h3/pcc/state = start'
refused " capture=yes: not with --threads" '[sim]' 'capture = yes' '[flows]' "$flow"

test_case "and so is what a line of [at] begins"
stopped() {  # STATUS, REASON, lines of the ini
  { printf '[topology]\nkind = fat-tree\nk = 8\n[flows]\nf = write h0 h1 size=64K count=1000\n[at]\n'; printf '%s\n' "${@:3}"; } >"$dir/bad.ini"
  local status=0
  sim --threads 2 "$dir/bad.ini" >"$dir/bad.txt" 2>"$dir/bad.err" || status=$?
  expect "$1" "$status" "the status: $(cat "$dir/bad.err")"
  grep -qF "$2" "$dir/bad.err" || fail "the reason: $(cat "$dir/bad.err")"
}
stopped 2 "bad.ini:7: packets are captured: not with --threads" "10us = kernel/debug/rocefs/pcap=$dir/bad.pcap"
stopped 2 "bad.ini:7: faults of core_0-agg_7_0 are injected: not with --threads" "10us = kernel/debug/rocefs/inject/add='x drop core_0-agg_7_0 count=20'"
stopped 2 "a simulation with --threads has its loads in the file" "10us = kernel/debug/rocefs/loads/start='x pattern=ring-allreduce size=1M hosts=h{0..127}'"
stopped 2 "bad.ini:7: NPCC of edge_0_0 is on: not with --threads" "10us = kernel/debug/rocefs/fabric/edge_0_0/ports/1/npcc/enable=1"

test_case "the command line's mistakes are told"
status=0
sim --threads 0 "$dir/alone.ini" 2>"$dir/bad.err" || status=$?
expect "2 rocefs: --threads: '0': a number from 1 to 64 is wanted" "$status $(head -n 1 "$dir/bad.err")" "no threads"
status=0
sim --threads 2 --seeds 1,2 --out "$dir/sweep" "$dir/alone.ini" 2>"$dir/bad.err" || status=$?
expect "2 rocefs: --threads is for one run: -j for a sweep" "$status $(head -n 1 "$dir/bad.err")" "a sweep"
