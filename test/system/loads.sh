#!/bin/bash
# loads/: many flows by one rule, on a mount.
. "$(dirname "$0")/lib/common.bash"
einval="Invalid argument"
here=kernel/debug/rocefs/loads
loads=$debug/loads
cat >"$dir/star.ini" <<'INI'
[topology]
kind = star
hosts = 4
rate = 100G
[load web]
pattern = poisson
load = 0.5
cdf = fbhadoop
flows = 300
INI
rule="pattern=poisson load=0.5 cdf=fbhadoop flows=300"
# figure LOAD KEY
figure() { awk -v key="$2" '$1 == key {print $2}' "$loads/$1/result"; }
refused() {  # TEXT MESSAGE REASON
  expect "$2" "$(store "$1" "$loads/start")" "'$1'"
  last_dmesg_says "$here/start: "
  last_dmesg_says "$3"
  expect start "$(ls "$loads")" "after a refused '$1'"
}

test_case "a load has the flows that rocefs sim has"
needs python3
"$ROCEFS" sim -o seed=9 "$dir/star.ini" --out "$dir/out" >/dev/null 2>&1
mounted -o clock=virtual,seed=9,config="$dir/star.ini"
expect start "$(ls "$loads")" "no load of the file runs"
expect ok "$(store "web $rule" "$loads/start")" "a load"
expect "running 0" "$(cat "$loads/web/state") $(figure web done)" "before time passes"
echo idle >"$debug/clock/advance"
expect done "$(cat "$loads/web/state")" "state"
expect "300 300 0" "$(figure web started) $(figure web done) $(figure web failed)" "flows"
# p50 p99 max of FCT, in the summary of the run.
wanted=$(python3 -c 'import json, sys
fct = json.load(open(sys.argv[1]))["runs"][0]["sizes"][-1]["fct_ns"]
print(*(int(fct[name]) for name in ("p50", "p99", "max")))' "$dir/out/summary.json")
expect "$wanted" "$(figure web fct_ns_p50) $(figure web fct_ns_p99) $(figure web fct_ns_max)" "flow completion times"
expect "$(awk -F, 'NR > 2 {sum += $6} END {print sum}' "$dir/out/flows.csv")" "$(figure web bytes)" "octets"
expect 300 "$(awk '$1 ~ /^up_to_/ {sum += $3} END {print sum}' "$loads/web/result")" "flows by size"
expect "" "$(ls "$debug/traffic" | grep web)" "no flow has files"

test_case "start= and until= count from the store, and idle waits for flows to come"
from=$(cat "$debug/clock/now_ns")
echo "late pattern=incast size=1000 start=5ms interval=1ms until=8ms hosts=h0 h1 h2" >"$loads/start"
echo 4999us >"$debug/clock/advance"
expect "running 0" "$(cat "$loads/late/state") $(figure late started)" "before its start"
echo idle >"$debug/clock/advance"
expect "done 6" "$(cat "$loads/late/state") $(figure late done)" "three times from two"
passed=$(($(cat "$debug/clock/now_ns") - from))
[ $passed -ge 7000000 ] && [ $passed -lt 7100000 ] || fail "it took $passed ns"

test_case "rounds of a collective are counted"
echo "ring pattern=ring-allreduce size=400000 rounds=3 gap=100us" >"$loads/start"
echo idle >"$debug/clock/advance"
expect "72 3" "$(figure ring done) $(figure ring rounds)" "flows and rounds"
# 6 steps of 100,000 octets at 100 Gb/s, and no more than twice that.
mean=$(figure ring round_ns_mean)
[ "$mean" -gt 48000 ] && [ "$mean" -lt 96000 ] || fail "a round takes $mean ns"

test_case "a load is stopped, and then removed"
echo "endless $rule" | sed 's/flows=300/flows=1000000000/' >"$loads/start"
echo 1ms >"$debug/clock/advance"
expect "$einval" "$(store 2 "$loads/endless/stop")" "another number"
expect ok "$(store 1 "$loads/endless/stop")" "stop"
expect stopped "$(cat "$loads/endless/state")" "state"
started=$(figure endless started)
[ "$started" -gt "$(figure endless done)" ] || fail "no flow was cut off: $(cat "$loads/endless/result")"
echo idle >"$debug/clock/advance"
expect "$started" "$(figure endless started)" "flows after the end"
for load in web late ring endless; do expect ok "$(store 1 "$loads/$load/stop")" "removal of $load"; done
expect start "$(ls "$loads")" "directories"

test_case "what cannot be is refused, and says why"
refused "" "$einval" "NAME pattern="
refused "a" "$einval" "NAME pattern="
refused "start $rule" "$einval" "cannot be a load's name"
refused "a/b $rule" "$einval" "cannot be a load's name"
refused "a load=0.5" "$einval" "pattern= is wanted"
refused "a pattern=poisson load=1.5 size=1K flows=1" "$einval" "load"
refused "a pattern=poisson load=0.5 size=1K" "$einval" "until= or flows= is wanted"
refused "a $rule until=0" "$einval" "start= is not before until="
refused "a pattern=poisson load=0.5 flows=1" "$einval" "size= or cdf= is wanted"
refused "a pattern=poisson load=0.5 size=1K flows=1 hosts=h0 h9" "$einval" "no device h9"
refused "a pattern=poisson load=0.5 size=1K flows=1 color=red" "$einval" "unknown key color"
refused "a h0 pattern=poisson" "$einval" "KEY=VALUE is wanted"
# Files would be opened by the mount, not by the writer.
refused "a pattern=trace file=/etc/passwd" "$einval" "rocefs sim"
refused "a pattern=poisson load=0.5 flows=1 cdf=/etc/passwd" "$einval" "cdf: "
echo "a $rule" >"$loads/start"
expect "File exists" "$(store "a $rule" "$loads/start")" "a second one of a name"
last_dmesg_says "there is a load a already"
for ((i = 1; i < 32; ++i)); do echo "b$i $rule" >"$loads/start"; done
expect "Too many open files" "$(store "c $rule" "$loads/start")" "more than 32"
last_dmesg_says "there are 32 loads"

test_case "a reset removes all loads and their flows"
echo 100us >"$debug/clock/advance"
echo 1 >"$debug/reset"
expect start "$(ls "$loads")" "directories"
echo "web $rule" >"$loads/start"
echo idle >"$debug/clock/advance"
expect "$wanted" "$(figure web fct_ns_p50) $(figure web fct_ns_p99) $(figure web fct_ns_max)" "the same load after it"

test_case "more than 4096 flows at once fail, and the others go on"
for host in h0 h1 h2 h3; do echo down >"$debug/links/$host-sw_0/state"; done
echo "much pattern=poisson load=1 size=1000 flows=5000 timeout=0" >"$loads/start"
echo 10ms >"$debug/clock/advance"
expect "5000 0 904" "$(figure much started) $(figure much done) $(figure much failed)" "flows"
grep -q "^first_failure 4096: 4096 flows run at once" "$loads/much/result" || fail "the reason: $(cat "$loads/much/result")"
for host in h0 h1 h2 h3; do echo up >"$debug/links/$host-sw_0/state"; done
echo 1 >"$loads/much/stop"

test_case "an all-to-all of more flows at once than may run is refused"
sed 's/^hosts = .*/hosts = 70/' "$dir/star.ini" >"$dir/seventy.ini"
mounted -o config="$dir/seventy.ini"
expect "$einval" "$(store "many pattern=all-to-all size=1K parallel=100" "$loads/start")" "70 times 69 flows"
grep -q "parallel=100: 4830 flows would run at once, 4096 may" "$debug/dmesg" || fail "what dmesg says: $(tail -n 2 "$debug/dmesg")"
expect start "$(ls "$loads")" "directories"
expect ok "$(store "few pattern=all-to-all size=1K parallel=2" "$loads/start")" "70 times 2 flows"

test_case "a load on the real clock wakes who polls its state"
mounted -o config="$dir/star.ini"
echo "web $rule" >"$loads/start"
await grep -q done "$loads/web/state"
expect "300 0" "$(figure web done) $(figure web failed)" "flows"

test_case "a load ends with its worker, and its name is free"
echo "web2 $rule" | sed 's/flows=300/flows=1000000000/' >"$loads/start"
await grep -q '^done [1-9]' "$loads/web2/result"
kill_worker
expect start "$(ls "$loads")" "directories"
echo "web2 $rule" >"$loads/start"
await grep -q done "$loads/web2/state"
unmounted
