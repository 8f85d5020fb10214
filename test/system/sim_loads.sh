#!/bin/bash
# Loads of `rocefs sim`: what they print and write, and what is refused with its line.
. "$(dirname "$0")/lib/common.bash"
cat >"$dir/loads.ini" <<'INI'
[sim]
title = Loads
[topology]
kind = star
hosts = 8
rate = 100G
[load web]
pattern = poisson
load = 0.4
cdf = sizes.txt
flows = 200
[load ring]
pattern = ring-allreduce
hosts = h{0..3}
size = 256K
rounds = 2
[load traced]
pattern = trace
file = flows.csv
[flows]
one = write h0 h1 size=64K count=10
INI
printf '1000 0\n1000 50\n100000 100\n' >"$dir/sizes.txt"
printf 'time,from,to,size\n1us,h2,h3,4K\n2us,h3,h2,4K\n' >"$dir/flows.csv"
sim() { "$ROCEFS" sim "$@"; }
refused() {  # REASON SED-SCRIPT
  local status=0
  sed "$2" "$dir/loads.ini" >"$dir/bad.ini"
  sim "$dir/bad.ini" >"$dir/bad.txt" 2>"$dir/bad.err" || status=$?
  expect 2 "$status" "status of $2"
  grep -qF -- "bad.ini:$1" "$dir/bad.err" || fail "$2: wanted '$1', got '$(cat "$dir/bad.err")'"
}

test_case "loads run beside flows, and their flows are in flows.csv"
sim "$dir/loads.ini" --out "$dir/out" >"$dir/table" 2>"$dir/err" || fail "$(cat "$dir/err")"
grep -q "^flows: 251 done$" "$dir/table" || fail "$(cat "$dir/table")"
grep -q "^ring *2 " "$dir/table" || fail "no rounds: $(cat "$dir/table")"
for name in one web.199 ring.47 traced.1; do
  grep -q "^,$name,h[0-9],h[0-9],.*,\"done\"" "$dir/out/flows.csv" || fail "no $name in flows.csv"
done
expect 251 "$(grep -c ",\"done\"" "$dir/out/flows.csv")" "flows in flows.csv"
expect "h2,h3,1000,4096" "$(grep '^,traced.0,' "$dir/out/flows.csv" | cut -d, -f3-6)" "a traced flow"

test_case "the same seed gives the same flows, another seed others"
sim "$dir/loads.ini" --out "$dir/again" >"$dir/table2" 2>/dev/null
cmp "$dir/table" "$dir/table2" || fail "another table"
cmp "$dir/out/flows.csv" "$dir/again/flows.csv" || fail "other flows"
sim -o seed=2 "$dir/loads.ini" --out "$dir/other" >/dev/null 2>&1
! cmp -s <(tail -n +3 "$dir/out/flows.csv") <(tail -n +3 "$dir/other/flows.csv") || fail "another seed, the same flows"

test_case "a run that is cut off tells of the flows that ran"
sed 's/flows = 200/until = 1s/; s/title = Loads/&\nuntil = 200us/' "$dir/loads.ini" >"$dir/cut.ini"
sim "$dir/cut.ini" --out "$dir/cut" >"$dir/table" 2>"$dir/err" || fail "$(cat "$dir/err")"
grep -q "^,web\..*,\"running\"" "$dir/cut/flows.csv" || fail "no flow is cut off: $(cat "$dir/table")"

test_case "flows that fail are counted, and the run with them"
sed 's/\[flows\]/[knobs]\nkernel\/debug\/rocefs\/links\/h2-sw_0\/loss = 1\n&/; s/pattern = trace/&\ntimeout = 8\nretry = 0/; /load web/,/flows = 200/d; /load ring/,/rounds/d' \
  "$dir/loads.ini" >"$dir/lossy.ini"
status=0
sim "$dir/lossy.ini" >"$dir/table" 2>"$dir/err" || status=$?
expect 1 "$status" "the status"
grep -q "2 flows of loads of the run failed, at first traced" "$dir/err" || fail "$(cat "$dir/err")"

test_case "a round whose flows have all failed has no time"
cat >"$dir/dead.ini" <<'INI'
[topology]
kind = star
hosts = 4
[load ring]
pattern = ring-allreduce
size = 64K
timeout = 8
retry = 0
[knobs]
kernel/debug/rocefs/links/h*-sw_0/loss = 1
INI
sim "$dir/dead.ini" >"$dir/table" 2>"$dir/err" && fail "a run without a network"
grep -q "^flows: .* failed" "$dir/table" || fail "$(cat "$dir/table")"
! grep -q "^ring " "$dir/table" || fail "the time of a round: $(cat "$dir/table")"

test_case "a reset removes the flows of a load that run, and those to come start"
cat >"$dir/reset.ini" <<'INI'
[topology]
kind = star
hosts = 4
rate = 10G
[load big]
pattern = trace
file = big.csv
[at]
50us = kernel/debug/rocefs/reset=1
INI
printf '1us,h0,h1,100M\n2us,h2,h1,100M\n60us,h2,h3,4K\n' >"$dir/big.csv"
status=0
sim "$dir/reset.ini" --out "$dir/reset" >"$dir/table" 2>"$dir/err" || status=$?
expect 1 "$status" "the status: $(cat "$dir/table" "$dir/err")"
expect 'big.0,"removed" big.1,"removed" big.2,"done"' \
  "$(awk -F, 'NR > 2 {print $2 "," $13}' "$dir/reset/flows.csv" | xargs -d '\n')" "the flows"
grep -q "2 flows of loads of the run failed, at first big.0: removed" "$dir/err" || fail "$(cat "$dir/err")"

test_case "a load that cannot be is refused with its line"
refused "9: load: 1.4 of a host's rate cannot be" "s/load = 0.4/load = 1.4/"
refused "10: [load web]: cdf: " "s/sizes.txt/none.txt/"
refused "7: [load web]: load= is wanted" "/load = 0.4/d"
refused "14: [load ring]: hosts: no device h9" "s/h{0..3}/h9 h1/"
refused "19: [load traced]: $dir/other.csv: No such file" "s/file = flows.csv/file = other.csv/"
refused "19: [load traced]: $dir/flows.csv:1: 'time,from,to,size': num_ranks N or rank R { is wanted" "s/pattern = trace/pattern = goal/"
refused "19: [load traced]: $dir: it cannot be read" "s/pattern = trace/pattern = goal/; s#file = flows.csv#file = $dir#"
refused "19: [load traced]: $dir: it cannot be read" "s#file = flows.csv#file = $dir#"
refused "10: [load web]: cdf: $dir: it cannot be read" "s#cdf = sizes.txt#cdf = $dir#"
refused "10: [load web]: cdf: no distribution websrch" "s/cdf = sizes.txt/cdf = websrch/"
refused "15: [load ring]: size=2147483648 is outside" "s/size = 256K/size = 2G/"
refused "11: [load web]: rounds= does not go with pattern=poisson" "s/flows = 200/rounds = 2/"
refused "16: [load ring]: senders=9: 3 hosts can send to one" "s/ring-allreduce/incast/; s/rounds = 2/senders = 9/"
refused "11: mtu=1000: 256, 512, 1024, 2048 or 4096 is wanted" "s/flows = 200/mtu = 1000/"
refused "11: [load web]: start= is not before until=" "s/flows = 200/until = 10us\nstart = 20us/"
refused "21: one: mtu=1000: 256, 512, 1024, 2048 or 4096 is wanted" "s/count=10/mtu=1000/"
refused "11: [load web]: h0: gid=7 is empty at an end" "s/flows = 200/gid = 7\nflows = 200/"
refused "18: pattern: 'tracce': poisson, incast" "s/pattern = trace/pattern = tracce/"
refused "13: unknown key ring in [load]" "s/pattern = ring-allreduce/ring = yes/"
refused "21: traced.7 is the name of a flow of [load traced]" "s/^one = /traced.7 = /"
refused "17: web exists already" "s/load traced/load web/"
refused "17: '' cannot be a name" "s/load traced/load/"

test_case "a variant replaces keys of a load"
{ cat "$dir/loads.ini"; printf '[variant few]\nload/web/flows = 10\n[variant many]\nload/ring/rounds = 3\n'; } >"$dir/variants.ini"
sim "$dir/variants.ini" >"$dir/table" 2>"$dir/err" || fail "$(cat "$dir/err")"
expect "61 275" "$(sed -n 's/^flows: \([0-9]*\) done$/\1/p' "$dir/table" | xargs)" "flows of the variants"
printf '[variant none]\nload/none/flows = 1\n' >>"$dir/variants.ini"
status=0
sim "$dir/variants.ini" >/dev/null 2>"$dir/err" || status=$?
grep -q "variants.ini:27: no \[load none\]" "$dir/err" || fail "$(cat "$dir/err")"

test_case "a sweep finds the files of loads beside the ini file"
(cd / && sim --seeds 1..2 "$dir/loads.ini" --out "$dir/sweep" >"$dir/table" 2>"$dir/err") || fail "$(cat "$dir/err")"
grep -q "2 of 2 runs complete" "$dir/table" || fail "$(cat "$dir/table")"

test_case "a mistake in a later variant is found before anything runs"
link=kernel/debug/rocefs/links/h0-sw_0
for mistake in "load/web/load = 7" "load/web/cdf = none" "load/none/size = 1" "$link/dealy = 1us" "$link/delay = x" "kernel/debug/rocefs/reset = 1" \
  "kernel/debug/rocefs/fabric/sw_0/ecn/kmin = 20M"; do
  { cat "$dir/loads.ini"; printf '[variant good]\n[variant bad]\n%s\n' "$mistake"; } >"$dir/bad.ini"
  status=0
  sim "$dir/bad.ini" --out "$dir/none" >"$dir/table" 2>"$dir/err" || status=$?
  expect 2 "$status" "the status of $mistake"
  expect "" "$(cat "$dir/table")" "what has run before $mistake"
  grep -q "^rocefs: $dir/bad.ini:24: " "$dir/err" || fail "$mistake: $(cat "$dir/err")"
done

test_case "a variant is a batch with [knobs]: each may need the other"
{ cat "$dir/loads.ini"; printf '[knobs]\nkernel/debug/rocefs/fabric/sw_0/ecn/kmin = 20M\n[variant A]\nkernel/debug/rocefs/fabric/sw_0/ecn/kmax = 30M\n[variant B]\nkernel/debug/rocefs/fabric/sw_0/ecn/kmin = 4K\n'; } >"$dir/batch.ini"
sim "$dir/batch.ini" >"$dir/table" 2>"$dir/err" || fail "$(cat "$dir/err")"
expect 2 "$(grep -c '^flows: 251 done$' "$dir/table")" "the runs"

test_case "a schedule that stops because of the order of its messages is told"
# Rank 1's message comes first, and the recv that takes any gets it. If messages took no time, it were rank 2's.
cat >"$dir/order.goal" <<'GOAL'
num_ranks 3
rank 0 {
any: recv 8b from -1
one: recv 8b from 1
last: send 8b to 1
last requires one
}
rank 2 {
send 1000000b to 0
}
rank 1 {
send 8b to 0
recv 8b from 0
}
GOAL
cat >"$dir/order.ini" <<INI
[topology]
kind = star
hosts = 3
[load order]
pattern = goal
file = order.goal
INI
status=0
"$ROCEFS" sim "$dir/order.ini" >"$dir/out.txt" 2>"$dir/err" || status=$?
expect "1" $status "the status"
grep -q "order.ini: load order: $dir/order.goal:4: this recv of rank 0 waits for ever" "$dir/err" || fail "$(cat "$dir/err")"
