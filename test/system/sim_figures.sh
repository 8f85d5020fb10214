#!/bin/bash
# rocefs sim: figures of a run are those of its flows, however it is looked at; and what it leaves out is told.
. "$(dirname "$0")/lib/common.bash"
needs python3
sim() { timeout 60 "$ROCEFS" sim "$@"; }
# of NAME EXPRESSION: of the one run `r` in that directory's summary.json.
of() {
  python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))["runs"][0]
print(eval(sys.argv[2]))' "$dir/$1/summary.json" "$2"
}
# link NAME LINK COLUMN
link() {
  awk -F, -v link="$2" -v column="$3" '
    NR == 2 { for (i = 1; i <= NF; ++i) if ($i == column) at = i }
    $2 == link { print $at }' "$dir/$1/links.csv"
}
run() {  # NAME, the scenario on stdin
  cat >"$dir/$1.ini"
  sim "$dir/$1.ini" --out "$dir/$1" >"$dir/$1.txt" 2>"$dir/$1.err" || fail "$1: $(cat "$dir/$1.err")"
}
two='[topology]
kind = star
hosts = 3
[flows]
f{1..2} = write h{1..2} h0 size=64K count=10'

test_case "a run ends with its flows, whatever looks at it"
run plain <<<"$two"
run sampled <<<"$two
[sample]
interval = 37us
b = kernel/debug/rocefs/links/h1-sw_0/bytes
r = kernel/debug/rocefs/links/h1-sw_0/bytes rate"
run idle <<<"${two/hosts = 3/hosts = 100}"
sim "$dir/plain.ini" --view --out "$dir/viewed" >/dev/null 2>"$dir/viewed.err" || fail "$(cat "$dir/viewed.err")"
end=$(awk -F, 'NR > 2 && $5 + $7 > end {end = $5 + $7} END {print end}' "$dir/plain/flows.csv")
for one in plain sampled idle viewed; do
  expect "$end" "$(of $one 'r["virtual_time_ns"]')" "the end of $one"
  expect "$(link plain sw_0-h0 utilization)" "$(link $one sw_0-h0 utilization)" "the utilization of $one"
done
cmp <(sed 1d "$dir/plain/queues.csv") <(sed 1d "$dir/sampled/queues.csv") || fail "other queues"
expect "$end $(link plain h1-sw_0 bytes) " "$(tail -n 1 "$dir/sampled/series.csv" | cut -d, -f2- | tr , ' ')" "the last sample, without a rate of its short interval"

test_case "a run of a load ends with its last flow, too"
load='[topology]
kind = star
hosts = 4
[load many]
pattern = poisson
load = 0.3
size = 20000
flows = 50'
run load <<<"$load"
expect "$(awk -F, 'NR > 2 && $5 + $7 > end {end = $5 + $7} END {print end}' "$dir/load/flows.csv")" "$(of load 'r["virtual_time_ns"]')" "the end"

test_case "a reset or another rate in the run makes no wrong utilization or rate"
run reset <<<"[sim]
until = 600us
$two
[at]
300us = kernel/debug/rocefs/reset=1
310us = kernel/debug/rocefs/traffic/start='g write h1 h0 size=64K count=100'
[sample]
interval = 50us
r = kernel/debug/rocefs/links/h1-sw_0/bytes rate"
awk -F, 'NR > 2 && $3 + 0 < 0 {exit 1}' "$dir/reset/series.csv" || fail "a negative rate: $(cat "$dir/reset/series.csv")"
expect ",300000," "$(grep ^,300000, "$dir/reset/series.csv")" "the rate over a reset"
awk -v u="$(link reset h1-sw_0 utilization)" 'BEGIN {exit !(u > 0.9 && u < 1)}' || fail "after the reset: $(link reset h1-sw_0 utilization)"
run slower <<<"${two/hosts = 3/hosts = 3
rate = 100G}
[at]
50us = kernel/debug/rocefs/links/sw_0-h0/rate=10G"
awk -v u="$(link slower sw_0-h0 utilization)" 'BEGIN {exit !(u > 0.9 && u <= 1)}' || fail "at two rates: $(link slower sw_0-h0 utilization)"

test_case "a wait for PFC that goes on at the end counts"
run waits <<<"[sim]
until = 1ms
[topology]
kind = star
hosts = 3
rate = 100G
[flows]
f{1..2} = write h{1..2} h0 size=64K count=1000 window=4096
[at]
100us = kernel/debug/rocefs/links/sw_0-h0/rate=1M"
for host in h1 h2; do
  paused=$(link waits $host-sw_0 paused_ns) waited=$(link waits $host-sw_0 xmit_wait_ns)
  [ "$waited" -gt 0 ] && [ "$waited" -gt $((paused - paused / 10)) ] || fail "$host was paused for $paused ns and waited for $waited ns"
done

test_case "a line of [at] with a typo is refused, and one that does not come due is told"
status=0
printf '%s\n[at]\n9ms = kernel/debug/rocefs/reste=1\n' "$two" >"$dir/typo.ini"
sim "$dir/typo.ini" >"$dir/typo.txt" 2>"$dir/typo.err" || status=$?
expect "2 rocefs: $dir/typo.ini:7: 9ms: kernel/debug/rocefs/reste: not a writable file" "$status $(cat "$dir/typo.err")" "a typo"
expect "" "$(cat "$dir/typo.txt")" "what ran"
run late <<<"$two
[at]
9ms = kernel/debug/rocefs/traffic/f1/stop=1
9ms = kernel/debug/rocefs/links/h1-sw_0/rate=1G"
warning="late.ini:7: 9ms has not come due: the run ended at ${end}ns"
grep -qx "rocefs: $warning" "$dir/late.err" || fail "on stderr: $(cat "$dir/late.err")"
grep -qx "warning: $warning" "$dir/late.txt" || fail "in the table: $(cat "$dir/late.txt")"
expect "2 $warning" "$(of late 'len(r["warnings"]), r["warnings"][0]' | tr -d "(),'")" "in the summary"

test_case "a range in a path of [at] stands for a store each, and in its time for a line each"
run ranged <<<"$two
[at]
5us = kernel/debug/rocefs/links/h{1..2}-sw_0/delay={3..4}us kernel/debug/rocefs/links/sw_0-h{1..2}/delay=7us
{7..8}us = kernel/debug/rocefs/links/h{1..2}-sw_0/rate={8..9}G
[sample]
interval = 10us
h1 = kernel/debug/rocefs/links/h1-sw_0/delay
h2 = kernel/debug/rocefs/links/h2-sw_0/delay
back = kernel/debug/rocefs/links/sw_0-h2/delay
rate = kernel/debug/rocefs/links/h2-sw_0/rate"
expect "3000,4000,7000,9e+09" "$(sed -n 5p "$dir/ranged/series.csv" | cut -d, -f3-)" "the knobs"
printf '%s\n[at]\n5us = kernel/debug/rocefs/links/h{0..119}-sw_0/delay=3us\n' "${two/hosts = ?/hosts = 120}" >"$dir/many.ini"
[[ $(outcome_of sim "$dir/many.ini") == "0 "* ]] || fail "more than \`set\` takes: $(outcome_of sim "$dir/many.ini")"
printf '%s\n[at]\n40us = kernel/debug/rocefs/traffic/f{1..2}/stop=1\n' "$two" >"$dir/stops.ini"
said=$(outcome_of sim "$dir/stops.ini")
[[ $said == *"flow f1 of the run: stopped"*"flow f2 of the run: stopped"* ]] || fail "triggers of one line: $said"
printf '%s\n[at]\n9ms = kernel/debug/rocefs/links/h{1..2}-sw_0/delay={1..3}us\n' "$two" >"$dir/long.ini"
expect "2 rocefs: $dir/long.ini:7: {1..3} is not as long as {1..2}" "$(outcome_of sim "$dir/long.ini")" "another length"
printf '%s\n[at]\n9ms = kernel/debug/rocefs/links/h{1..4}-sw_0/delay=1us\n' "$two" >"$dir/none.ini"
[[ $(outcome_of sim "$dir/none.ini") == "2 rocefs: $dir/none.ini:7: 9ms: kernel/debug/rocefs/links/h3-sw_0/delay: "* ]] ||
  fail "no such link: $(outcome_of sim "$dir/none.ini")"

test_case "times of rounds are in the summary, and with intervals in that of a sweep"
ring='[topology]
kind = star
hosts = 4
[load ring]
pattern = ring-allreduce
size = 256K
rounds = 3'
run ring <<<"$ring"
expect "3 True" "$(of ring 'r["rounds"]["ring"]["rounds"], 0 < r["rounds"]["ring"]["min_ns"] <= r["rounds"]["ring"]["mean_ns"] <= r["rounds"]["ring"]["max_ns"]' | tr -d '(),')" "the rounds"
sim --seeds 1..2 "$dir/ring.ini" --out "$dir/sweep" >"$dir/sweep.txt" 2>"$dir/sweep.err" || fail "$(cat "$dir/sweep.err")"
grep -qE '^- +ring +2 +3 .* us ±' "$dir/sweep.txt" || fail "no rounds: $(cat "$dir/sweep.txt")"
grep -q '"rounds.ring.mean_ns"' "$dir/sweep/summary.json" || fail "no rounds in summary.json"

test_case "a load that would start after the end, and limit= beside until=, are refused"
refused() {  # REASON, the scenario on stdin
  cat >"$dir/bad.ini"
  local status=0
  sim "$dir/bad.ini" >/dev/null 2>"$dir/bad.err" || status=$?
  expect 2 "$status" "status"
  grep -qF -- "$dir/bad.ini:$1" "$dir/bad.err" || fail "wanted '$1', got '$(cat "$dir/bad.err")'"
}
refused "11: [load many]: start=1ms is not before until=" <<<"[sim]
until = 1ms
$load
start = 1ms"
refused "3: limit= is for a run without until=" <<<"[sim]
until = 1ms
limit = 1s
$two"
refused "4: hosts=10 do not spread evenly over 4 switches" <<<"${two/star
hosts = 3/leaf-spine
leaves = 4
hosts = 10}"
