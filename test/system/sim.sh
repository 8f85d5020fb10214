#!/bin/bash
# rocefs sim: a scenario runs without a mount, identically for the same seed; and inject/, which it
# shares with a mount.
. "$(dirname "$0")/lib/common.bash"
cat >"$dir/small.ini" <<'INI'
[sim]
title = Two flows and a fault
capture = yes
[clock]
seed = 5
[topology]
kind = star
hosts = 3
rate = 10G
[flows]
a = write h0 h2 size=64K count=8
b = write h1 h2 size=64K count=8 start=50us timeout=8
[inject]
lost = drop h1-sw_0 opcode=data skip=3
[at]
100us = kernel/debug/rocefs/links/h0-sw_0/delay=3us
100us = kernel/debug/rocefs/links/h0-sw_0/loss=0 kernel/debug/rocefs/links/h1-sw_0/loss=0
120us = kernel/debug/rocefs/traffic/start='late send h0 h1 count=2'
[sample]
interval = 20us
sent = kernel/debug/rocefs/links/h0-sw_0/bytes rate scale=8e-9
moved = kernel/debug/rocefs/traffic/b/result key=bytes
[plot]
Sent by h0 (Gb/s) = sent
[knobs]
kernel/debug/rocefs/links/sw_0-h{0..2}/loss = 0.01
[variant near]
[variant far]
kernel/debug/rocefs/links/h{0..2}-sw_0/delay = 20us
INI
sim() { "$ROCEFS" sim "$@"; }
in_dir() { (cd "$dir" && find "$1" -type f ! -name '*.png' ! -name timing.csv -exec sha256sum {} + | sed "s| $1/| |" | sort); }
refused() {  # STATUS REASON SED-SCRIPT
  local status=0
  sed "$3" "$dir/small.ini" >"$dir/bad.ini"
  sim "$dir/bad.ini" >"$dir/bad.txt" 2>"$dir/bad.err" || status=$?
  expect "$1" "$status" "status of $3"
  grep -qF -- "$2" "$dir/bad.err" || fail "$3: wanted '$2', got '$(cat "$dir/bad.err")'"
}
examples=$(realpath "$(dirname "$0")/../../tools/examples")
mkdir "$dir/plugins"
"${CXX:-c++}" -std=c++20 -O2 -shared -fPIC -I"$examples/../../pcc/api" "$examples/gentle.cc" -o "$dir/plugins/gentle.so"
plugged() {  # CUT, OUTPUT
  cat >"$dir/plugin.ini" <<INI
[topology]
kind = star
hosts = 3
[knobs]
kernel/debug/rocefs/fabric/sw_0/ecn/enable = 1
class/infiniband/h{1..2}/pcc/plugin_dir = $dir/plugins
class/infiniband/h{1..2}/pcc/load = 1
class/infiniband/h{1..2}/pcc/algo = gentle
class/infiniband/h{1..2}/pcc/params/cut = $1
class/infiniband/h{1..2}/pcc/state = start
[flows]
f{1..2} = write h{1..2} h0 size=64K count=100
[sample]
interval = 100us
w = class/infiniband/h1/pcc/qps/17/window below=4294967295
INI
  "$ROCEFS" sim "$dir/plugin.ini" --out "$dir/$2" >"$dir/$2.txt" 2>"$dir/$2.err"
}

test_case "the same seed gives the same run, another seed another"
sim "$dir/small.ini" --out "$dir/one" >"$dir/one.txt" 2>"$dir/one.err" || fail "$(cat "$dir/one.err")"
sim --out "$dir/two" -o seed=5 "$dir/small.ini" >"$dir/two.txt" 2>/dev/null
cmp "$dir/one.txt" "$dir/two.txt" || fail "the same seed, another table"
expect "$(in_dir one)" "$(in_dir two)" "outputs of the same seed"
sim "$dir/small.ini" --out "$dir/three" -o seed=6 >"$dir/three.txt" 2>/dev/null
[ "$(grep -c trace "$dir/three.txt")" = 2 ] || fail "no totals: $(cat "$dir/three.txt")"
[ "$(grep trace "$dir/one.txt")" != "$(grep trace "$dir/three.txt")" ] || fail "another seed, the same run"

test_case "many variants are drawn below each other, each of its width"
{ sed '/^\[variant/,$d; s/ count=[0-9]*//' "$dir/small.ini"; printf '[variant v%d]\n' {1..12}; } >"$dir/many.ini"
sim "$dir/many.ini" --out "$dir/many" >/dev/null 2>"$dir/many.err" || true
expect "2400 2400" "$(sed -n 's/^set terminal.* size \([0-9]*\),.*/\1/p' "$dir/many/plot.gp" | xargs)" "width"
grep -q '^set multiplot layout 6,5 ' "$dir/many/plot.gp" || fail "$(grep '^set multiplot layout' "$dir/many/plot.gp")"
for kind in series flows; do
  expect "$(for i in 1 2; do seq 0 11; done | xargs)" "$(sed -n "s/^plot .$kind\([0-9]*\) .*/\1/p" "$dir/many/plot.gp" | xargs)" "$kind"
done
! command -v gnuplot >/dev/null || [ -s "$dir/many/plot.png" ] || fail "$(cat "$dir/many.err")"

test_case "every output names its source"
hash=$(sed -n '1s/.*configuration //p' "$dir/one.txt")
expect "# Two flows and a fault: small.ini, seed 5, configuration $hash" "$(head -n 1 "$dir/one.txt")" "the table's head"
expect "# small.ini, seed 5, configuration $hash, complete" "$(head -n 1 "$dir/one/flows.csv")" "the head of flows.csv"
for file in series.csv plot.gp; do
  expect "# small.ini, seed 5, configuration $hash" "$(head -n 1 "$dir/one/$file")" "the head of $file"
done
grep -q "seed 6" "$dir/three/flows.csv" || fail "no seed in $(head -n 1 "$dir/three/flows.csv")"
if command -v gnuplot >/dev/null; then
  grep -q "small.ini, seed 5, configuration $hash" "$dir/one/plot.svg" || fail "the plot does not say where it is from"
  [ "$(head -c 4 "$dir/one/plot.png" | tail -c 3)" = PNG ] || fail "no plot.png"
else
  grep -q "gnuplot-nox" "$dir/one.err" || fail "nobody said that gnuplot is missing"
fi

test_case "the table and the files have their columns and lines"
expect "flow from to bytes FCT ideal FCT slowdown goodput retransmitted CNPs state" \
  "$(sed -n '/^flow /p' "$dir/one.txt" | head -n 1 | xargs)" "the columns"
expect "4 done" "$(grep -cE '^(a|b) +h[01] +h2 +524288 .* done$' "$dir/one.txt") done" "flows"
expect 2 "$(grep -c '^fault lost fired 1: drop h1-sw_0 opcode=data skip=3$' "$dir/one.txt")" "faults that fired"
expect "variant,flow,from,to,start_ns,bytes,fct_ns,ideal_ns,slowdown,goodput_bps,retransmitted,cnps,state,received" \
  "$(sed -n 2p "$dir/one/flows.csv")" "the columns of flows.csv"
expect 4 "$(grep -cE '^(near|far),[ab],h[01],h2,(0|50000),524288,' "$dir/one/flows.csv")" "the lines of flows.csv"
expect "variant,time_ns,sent,moved" "$(sed -n 2p "$dir/one/series.csv")" "the columns of series.csv"
expect "near,0,," "$(sed -n 3p "$dir/one/series.csv")" "before anything was sent"
expect 524288 "$(grep ^far "$dir/one/series.csv" | tail -n 1 | cut -d , -f 4)" "the last sample"
for variant in near far; do
  # A packet's time stamp is virtual: the run began at the epoch.
  tshark -r "$dir/one/packets-$variant.pcapng" -c 1 -T fields -e frame.time_epoch 2>/dev/null | grep -qx '0\.0*' ||
    fail "packets-$variant.pcapng does not begin at 0"
  expect "h0 h1 h2" "$(tshark -r "$dir/one/packets-$variant.pcapng" -T fields -e frame.interface_name 2>/dev/null | sort -u | xargs)" \
    "the interfaces of packets-$variant.pcapng"
done
grep -q "packet-hops and .* per CPU second" "$dir/one.err" || fail "no word of CPU seconds"

test_case "samples of knobs have the base unit"
sed 's|^sent = .*|sent = kernel/debug/rocefs/links/h0-sw_0/rate|; s|^moved = .*|moved = kernel/debug/rocefs/links/h0-sw_0/delay scale=1e-3|' "$dir/small.ini" >"$dir/units.ini"
sim "$dir/units.ini" --out "$dir/units" >/dev/null 2>"$dir/units.err" || fail "$(cat "$dir/units.err")"
awk -F, '$1 == "near" && $2 == 0 {exit !($3 == 1e10 && $4 == 1)}' "$dir/units/series.csv" || fail "$(head -n 4 "$dir/units/series.csv")"

test_case "a directory that cannot have the results is refused before anything runs"
touch "$dir/file"
expect "1 rocefs: $dir/file: Not a directory" "$(outcome_of sim "$dir/small.ini" --out "$dir/file")" "a file"
expect "2 rocefs: --out names no directory Try 'rocefs sim --help'." "$(outcome_of sim "$dir/small.ini" --out '' | xargs -d '\n')" "an empty word"
mkdir -m 555 "$dir/closed"
if $root; then open_to_users; fi
[ ! -r "$dir/small.ini" ] || expect "1 rocefs: $dir/closed: Permission denied" "$(outcome_of as_user "$ROCEFS" sim "$dir/small.ini" --out "$dir/closed")" "a directory of others"

test_case "files of an earlier run do not pass for those of a later one"
cp -r "$dir/one" "$dir/reused"
touch "$dir/reused/packets-mine.pcapng"
sed 's/^capture.*//; /^\[sample\]/,/^Sent by/d; s/^\[variant far\]/[variant other]/' "$dir/small.ini" >"$dir/less.ini"
sim "$dir/less.ini" --view --out "$dir/reused" >/dev/null 2>"$dir/less.err" || fail "$(cat "$dir/less.err")"
expect "flows.csv links.csv packets-mine.pcapng plot.gp queues.csv report.html summary.json timing.csv view-near.jsonl view-other.jsonl" \
  "$(cd "$dir/reused" && echo * | sed 's/plot.png //; s/plot.svg //')" "the files"
sim --seeds 1..2 "$dir/less.ini" --out "$dir/reused" >/dev/null 2>"$dir/less.err" || fail "$(cat "$dir/less.err")"
expect "packets-mine.pcapng report.html runs summary.json sweep.json timing.csv" "$(cd "$dir/reused" && echo *)" "the files of a sweep"
expect "1 rocefs: $dir/reused has the runs of a sweep: another directory is wanted" "$(outcome_of sim "$dir/less.ini" --out "$dir/reused")" "a run beside a sweep's"

test_case "a flow alone takes the ideal time"
# A flow alone takes the ideal time, except for the sender's gaps between messages.
cat >"$dir/alone.ini" <<'INI'
[topology]
kind = dumbbell
hosts = 2
core_rate = 1G
[flows]
w = write h0 h1 size=1M
r = read h1 h0 size=1M start=20ms
s = send h0 h1 size=4096 start=40ms
f = write h0 h1 size=256K file=data start=60ms
e = write h0 h1 file=empty start=80ms
INI
head -c 1100000 /dev/zero >"$dir/data"
: >"$dir/empty"
sed -i "s|file=|file=$dir/|" "$dir/alone.ini"
sim "$dir/alone.ini" >"$dir/alone.txt" 2>/dev/null
expect "1.00 1.00 1.00 1.00 1.00" "$(awk '$1 ~ /^[wrsfe]$/ {print $9}' "$dir/alone.txt" | xargs)" "slowdown of flows that are alone"

test_case "an unreliable flow that lost messages is not done, and has no slowdown"
cat >"$dir/unreliable.ini" <<'INI'
[topology]
kind = star
hosts = 3
[knobs]
kernel/debug/rocefs/links/sw_0-h2/loss = 1
[flows]
gone = uc h0 h2 size=300000 count=17
some = ud h0 h1 size=1000 count=20
all = uc h1 h0 size=3000 count=4 start=5ms
[inject]
one = drop h0-sw_0 opcode=UD_SEND_ONLY_IMM skip=3 count=1
INI
expect 0 "$(sim "$dir/unreliable.ini" --out "$dir/unreliable" >"$dir/unreliable.txt" 2>&1; echo $?)" "the status: $(cat "$dir/unreliable.txt")"
grep -qE '^gone .* - .* - .*  lost: 0 of 17 messages arrived$' "$dir/unreliable.txt" || fail "$(cat "$dir/unreliable.txt")"
grep -qE '^some .* - .* - .*  lost: 19 of 20 messages arrived$' "$dir/unreliable.txt" || fail "$(cat "$dir/unreliable.txt")"
grep -q '^1 of 3 flows done, slowdown 1\.00 on average, 1\.00 at most' "$dir/unreliable.txt" || fail "$(cat "$dir/unreliable.txt")"
expect 'gone  "lost: 0 of 17 messages arrived" 0 some  "lost: 19 of 20 messages arrived" 19 all 1.00 "done" 4' \
  "$(awk -F, 'NR > 2 {print $2, substr($9, 1, 4), $13, $14}' "$dir/unreliable/flows.csv" | sort -r | sort -s -k 2 | xargs -d '\n')" "flows.csv"

test_case "many flows are shown by size"
cat >"$dir/many.ini" <<'INI'
[topology]
kind = star
hosts = 4
rate = 100G
[flows]
small{1..40} = write h1 h0 size=1000 start={1..40}us
large{1..20} = write h2 h0 size=100K
INI
sim "$dir/many.ini" --out "$dir/many" >"$dir/many.txt" 2>"$dir/many.err" || fail "$(cat "$dir/many.err")"
expect "flows: 60 done" "$(sed -n 2p "$dir/many.txt")" "the states"
expect "1K:40 128K:20 all:60 1K:40 128K:20 all:60" "$(awk '/^(1K|128K|all) / {print $1 ":" $2}' "$dir/many.txt" | xargs)" "the sizes"
expect "size up to flows slowdown mean p50 p95 p99 p99.9 max" "$(grep slowdown "$dir/many.txt" | head -n 1 | xargs)" "the columns"
# The table's quantiles beside those of the flows: of nearest rank, within 0.8 % and the rounding.
for column in 4:0.5 5:0.95 6:0.99 8:1; do
  awk -F, 'NR > 2 && $6 == 102400 {print $9}' "$dir/many/flows.csv" | sort -g |
    awk -v q="${column#*:}" -v told="$(awk '/slowdown/ {on = 1} on && $1 == "128K" {print $'"${column%:*}"'}' "$dir/many.txt")" '
      {v[NR] = $1} END {r = q * NR; r = r > int(r) ? int(r) + 1 : r; d = told - v[r]; exit !(NR == 20 && d < 0.0078 * v[r] + 0.006 && -d < 0.0078 * v[r] + 0.006)}' ||
    fail "the quantile ${column#*:}: $(cat "$dir/many.txt")"
done
expect 60 "$(sim "$dir/many.ini" --flows 2>/dev/null | grep -c ' done$' | awk '{print $1 - 1}')" "lines with --flows"

test_case "a run that meets its limit keeps the results so far"
sed 's/^\[flows\]/[sim]\nlimit = 50ms\n[flows]/; s/size=4096/size=4096 count=200000/' "$dir/alone.ini" >"$dir/cut.ini"
expect 1 "$(sim "$dir/cut.ini" --out "$dir/cut" >"$dir/cut.txt" 2>"$dir/cut.err"; echo $?)" "status"
expect "rocefs: cut.ini: 1 of 5 flows still run after 50ms, 2 have not started" "$(grep ^rocefs "$dir/cut.err" | sed "s|$dir/||")" "the reason"
expect "w:done r:done s:running f:not_started e:not_started" \
  "$(sed -nE 's/^([wrsfe]) .* (done|running|not started)$/\1:\2/p' "$dir/cut.txt" | tr ' ' _ | xargs)" "states in the table"
expect "1048576 1048576" "$(awk -F, '$13 == "\"done\"" {print $6}' "$dir/cut/flows.csv" | xargs)" "octets in flows.csv"
expect "partial" "$(head -n 1 "$dir/cut/flows.csv" | awk '{print $NF}')" "the mark in flows.csv"
[ "$(awk -F, '$2 == "s" {print $6}' "$dir/cut/flows.csv")" -gt 0 ] || fail "nothing of a flow that ran: $(cat "$dir/cut/flows.csv")"

test_case "flows leave a far cable that goes down when routes follow, and fail where routes do not"
cat >"$dir/routes.ini" <<'INI'
[topology]
kind = leaf-spine
spines = 4
[flows]
f{1..16} = write h0 h1 size=64K count=20 timeout=8 retry=3
[at]
1ms = kernel/debug/rocefs/links/spine_0-leaf_1/state=down kernel/debug/rocefs/links/leaf_1-spine_0/state=down
[variant follow]
kernel/debug/rocefs/routes/reconverge = 1
kernel/debug/rocefs/routes/delay = 500us
[variant stay]
INI
expect 1 "$(sim "$dir/routes.ini" --out "$dir/routes" >/dev/null 2>&1; echo $?)" "status"
expect 16 "$(grep -c '^follow,.*done' "$dir/routes/flows.csv")" "flows that are done when routes follow"
[ "$(grep -c '^stay,.*failed' "$dir/routes/flows.csv")" -gt 0 ] || fail "no flow failed: $(cat "$dir/routes/flows.csv")"
sed 's/^spines = 4/spines = 4\nreconverge = 500us/; /^\[variant/,$d' "$dir/routes.ini" >"$dir/key.ini"
expect 0 "$(sim "$dir/key.ini" >"$dir/key.txt" 2>&1; echo $?)" "status with reconverge=: $(cat "$dir/key.txt")"

test_case "a network of 1,024 hosts and 320 switches starts, and its files are there when looked for"
cat >"$dir/tree.ini" <<'INI'
[topology]
kind = fat-tree
k = 16
[flows]
f = write h0 h1023 size=64K
[sample]
lost = kernel/debug/rocefs/links/core_63-agg_15_7/lost
queue = kernel/debug/rocefs/fabric/edge_15_7/ports/1/queue/0/bytes

INI
expect 0 "$(sim "$dir/tree.ini" --out "$dir/tree" >"$dir/tree.txt" 2>&1; echo $?)" "status: $(cat "$dir/tree.txt")"
grep -q "^1 of 1 flows done, slowdown 1.00" "$dir/tree.txt" || fail "$(cat "$dir/tree.txt")"

test_case "a full disk is reported"
if sim "$dir/alone.ini" >/dev/full 2>"$dir/full"; then fail "a table that nobody gets"; fi
grep -q "^rocefs: stdout: No space left on device" "$dir/full" || fail "a full disk: $(cat "$dir/full")"

test_case "an error during a run is a failure"
refused 1 "bad.ini:14: fault lost has not fired in the run of near" 's/skip=3/skip=3000/'
refused 1 "flow b of the run of near: failed: " 's/^lost = .*/lost = drop h1-sw_0 count=0/; s/timeout=8/timeout=1 retry=1/'
refused 1 "1 of 2 flows still run after 1ms" 's/^lost = .*/lost = drop h1-sw_0 count=0/; s/^capture.*/limit = 1ms/'
refused 1 "flow a of the run of near: removed" 's|^120us = .*|120us = kernel/debug/rocefs/reset=1|'

test_case "an error in a file is reported with its line"
refused 2 "bad.ini:4: uplink u: the kernel's network needs the real clock" \
  '3,$d; 2a [device x]\n[uplink u]\n[link x u]'
refused 2 "bad.ini:11: a: no device h9" 's/write h0 h2/write h9 h2/'
refused 2 "bad.ini:11: a: unknown op 'fly'" 's/write h0 h2/fly h0 h2/'
refused 2 "bad.ini:11: a: mtu=2048: the ports have 1024" 's/h0 h2 size=64K/h0 h2 mtu=2048/; s/^rate = 10G/&\nmtu = 1024/; 3d'
refused 2 "bad.ini:11: a: size=5000: a datagram holds at most the MTU, 4096 bytes" 's/write h0 h2 size=64K/ud h0 h2 size=5000/'
refused 2 "bad.ini:11: a: gid=7 is empty at an end" 's/size=64K count=8$/& gid=7/'
refused 2 "bad.ini:12: b: start: " 's/start=50us/start=soon/'
refused 2 "bad.ini:14: lost: no link h1-h2" 's/drop h1-sw_0/drop h1-h2/'
refused 2 "bad.ini:14: lost: unknown action eat" 's/drop h1/eat h1/'
refused 2 "bad.ini:16: 100us: kernel/debug/rocefs/links/h0-sw_0/delay: 'x'" 's/delay=3us/delay=x/'
refused 2 "bad.ini:18: unknown op 'fly'" "s/'late send/'late fly/"
refused 2 "bad.ini:21: sent: no file nowhere" 's/^sent = .*/sent = nowhere/'
refused 2 "bad.ini:24: no [sample] lost" 's/= sent$/= lost/'
refused 2 "bad.ini:24: Sent by h0 (Gb/s): AXIS = NAME [NAME …] is wanted" 's/= sent$/=/'
refused 2 "bad.ini:23: [plot]: AXIS = NAME [NAME …] is wanted" 's/^Sent by.*//'
refused 2 "bad.ini:21: sent: kernel/debug/rocefs/links/h0-sw_0/state has words (" 's|^sent = .*|sent = kernel/debug/rocefs/links/h0-sw_0/state|'
refused 2 "bad.ini:21: sent: class/infiniband/h0/ports/1/link_layer does not begin with a number: 'Ethernet'" 's|^sent = .*|sent = class/infiniband/h0/ports/1/link_layer|'
refused 2 "bad.ini:21: sent: class/infiniband/h0/ports/1/rate has no line with nosuch" 's|^sent = .*|sent = class/infiniband/h0/ports/1/rate key=nosuch|'
refused 2 "bad.ini:26: kernel/debug/rocefs/links/sw_0-h0/loss: " 's/loss = 0.01/loss = 2/'
refused 2 "bad.ini:29: kernel/debug/rocefs/links/h0-sw_0/delay: " 's/^\(.*\)delay = 20us/\1delay = x/'
refused 2 "bad.ini:2: unknown key name in [sim]" 's/^title/name/'
refused 2 "bad.ini:26: {0..1} is not as long as {0..2}" 's/= 0.01/= {0..1}/'
status=0
sim >/dev/null 2>&1 || status=$?
expect 2 "$status" "status without a file"
status=0
sim -o clock=real "$dir/small.ini" >/dev/null 2>&1 || status=$?
expect 2 "$status" "status with a real clock"

test_case "a scenario can be mounted, without starting its run"
mounted -o clock=virtual,config="$dir/small.ini"
expect "start" "$(ls "$debug/traffic")" "flows on a mount"
expect "" "$(cat "$debug/inject/list")" "faults on a mount"

test_case "a fault is added, fires and is removed"
expect ok "$(store "f drop h0-sw_0 opcode=data" "$debug/inject/add")" "a fault"
expect "File exists" "$(store "f drop h0-sw_0" "$debug/inject/add")" "a fault of the same name"
expect "Invalid argument" "$(store "g eat h0-sw_0" "$debug/inject/add")" "a bad fault"
last_dmesg_says "unknown action eat"
echo "w write h0 h1 count=10" >"$debug/traffic/start"
echo idle >"$debug/clock/advance"
expect "done 1" "$(cat "$debug/traffic/w/state" "$debug/inject/f/fired" | xargs)" "a flow, and the fault"
expect "f fired 1: drop h0-sw_0 opcode=data" "$(cat "$debug/inject/list")" "the list"

test_case "a link flaps"
expect ok "$(store "flap down h0-sw_0 delay=1ms" "$debug/inject/add")" "a link that flaps"
expect down "$(cat "$debug/links/h0-sw_0/state")" "the link"
echo 1ms >"$debug/clock/advance"
expect up "$(cat "$debug/links/h0-sw_0/state")" "the link, later"
expect ok "$(store 1 "$debug/inject/f/remove")" "removing a fault"
expect "add flap list" "$(ls "$debug/inject" | xargs)" "what is left"

test_case "a reset removes faults"
echo "d delay h0-sw_0 delay=5s" >"$debug/inject/add"
echo "w2 write h0 h1" >"$debug/traffic/start"
echo 10us >"$debug/clock/advance"
echo 1 >"$debug/reset"
expect "add list" "$(ls "$debug/inject" | xargs)" "faults after a reset"
echo "w3 write h0 h1" >"$debug/traffic/start"
echo idle >"$debug/clock/advance"
expect "done" "$(cat "$debug/traffic/w3/state")" "a flow after a reset"

test_case "a plugin gives the same run with the same seed"
# A plugin is called in a process of its own while time stands.
plugged 0.3 once || fail "a plugin: $(cat "$dir/once.err")"
plugged 0.3 again || fail "a plugin: $(cat "$dir/again.err")"
expect "$(grep -o 'trace .*' "$dir/once.txt")" "$(grep -o 'trace .*' "$dir/again.txt")" "the same run"
cmp "$dir/once/series.csv" "$dir/again/series.csv" || fail "the same windows"
awk -F, 'NR > 2 && $3 != "" && $3 < 400 * 1024 {cut = 1} END {exit !cut}' "$dir/once/series.csv" || fail "its windows: $(cat "$dir/once/series.csv")"
plugged 0.9 other && [ "$(grep -o 'trace .*' "$dir/other.txt")" != "$(grep -o 'trace .*' "$dir/once.txt")" ] || fail "its parameter changes nothing"

test_case "an invalid value of a plugin's parameter is reported with its line"
plugged much bad && fail "a bad value"
grep -q "plugin.ini:9: .*pcc/params/cut: " "$dir/bad.err" || fail "a bad value: $(cat "$dir/bad.err")"

test_case "flows that are cut off have what they have sent again so far"
cat >"$dir/cut.ini" <<'INI'
[sim]
until = 500us
[topology]
kind = star
hosts = 3
rate = 100G
[knobs]
kernel/debug/rocefs/links/h*-sw_0/loss = 0.01
[flows]
f = write h0 h2 size=100M count=1 timeout=7
[load one]
pattern = incast
size = 100M
senders = 1
hosts = h1 h2
to = h2
timeout = 7
INI
sim "$dir/cut.ini" --out "$dir/cut" >"$dir/cut.txt" || fail "cut off: $(cat "$dir/cut.txt")"
awk -F, 'NR > 2 && $11 > 0 && $13 ~ /running/ {++cut} END {exit cut != 2}' "$dir/cut/flows.csv" || fail "$(cat "$dir/cut/flows.csv")"
