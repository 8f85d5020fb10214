#!/bin/bash
# rocefs sim --seeds: the same results by one process, by several, by shards and by a job array; what
# is missing is run, and nothing is mixed.
. "$(dirname "$0")/lib/common.bash"
needs python3
scenario=$(realpath "$(dirname "$0")/../../tools/scenarios")
sim() { "$ROCEFS" sim "$@"; }
# Files of a sweep with their hashes, but for CPU times.
in_sweep() { (cd "$dir/$1" && find . -type f ! -name timing.csv -exec sha256sum {} + | sort -k 2); }
cat >"$dir/lossy.ini" <<'INI'
[sim]
title = a flow over a lossy link
[topology]
kind = star
hosts = 2
rate = 100G
[flows]
f = write h0 h1 size=64K count=50
[sample]
interval = 100us
sent = kernel/debug/rocefs/links/h0-sw_0/bytes
[knobs]
kernel/debug/rocefs/links/h0-sw_0/loss = 0.01
[variant near]
[variant far]
kernel/debug/rocefs/links/h{0..1}-sw_0/delay = 10us
INI
sim --seeds 1..5 --out "$dir/one" "$dir/lossy.ini" >"$dir/one.txt" 2>"$dir/one.err" || fail "$(cat "$dir/one.err")"

test_case "the table has means and intervals of the runs' figures"
for variant in near far; do
  python3 - "$dir/one" $variant <<'PY' || fail "the means of $variant: $(cat "$dir/one/summary.json")"
import csv, json, math, sys
out, variant = sys.argv[1:]
slowdowns = []
for seed in range(1, 6):
    with open(f"{out}/runs/{variant}/seed-{seed}/flows.csv") as file:
        file.readline()
        slowdowns += [float(row["slowdown"]) for row in csv.DictReader(file)]
mean = sum(slowdowns) / 5
half = 2.7764 * math.sqrt(sum((s - mean) ** 2 for s in slowdowns) / 4 / 5)
summary = json.load(open(f"{out}/summary.json"))
told = [m for m in summary["means"] if m["variant"] == variant][0]["sizes"][-1]["slowdown"]["mean"]
assert told["runs"] == 5 and abs(told["mean"] - mean) < 1e-4 and abs(told["ci95"] - half) < 1e-3, (told, mean, half)
lost = [0] * 5
for seed in range(1, 6):
    with open(f"{out}/runs/{variant}/seed-{seed}/links.csv") as file:
        file.readline()
        lost[seed - 1] = sum(int(row["lost"]) for row in csv.DictReader(file))
totals = [m for m in summary["means"] if m["variant"] == variant][0]["totals"]
assert sum(lost) > 0 and totals["drops.lost"]["runs"] == 5 and abs(totals["drops.lost"]["mean"] - sum(lost) / 5) < 1e-6
assert totals["flows.done"]["mean"] > 0 and totals["flows.not_done"]["mean"] == 0, totals
assert "queues.worst_octets.p99" in totals and "trace_hash" not in totals, totals
lines = [line.split() for line in open(f"{out}.txt")]
head = [line for line in lines if "retransmitted" in line][0]
told = [line for line in lines[lines.index(head):] if line and line[0] == variant][0]
assert f"{sum(lost) / 5:.3g}" in told, (told, lost)
assert half > 0 and len(summary["runs"]) == 10 and not summary["partial"]
PY
done
expect "10 of 10 runs complete" "$(tail -n 1 "$dir/one.txt" | cut -d ';' -f 1)" "the last line"
grep -qE '^near +4M +5 +1 .*±' "$dir/one.txt" || fail "the table: $(cat "$dir/one.txt")"

test_case "a run of a sweep is the run of its seed"
sim -o seed=3 --out "$dir/single" "$dir/lossy.ini" >"$dir/single.txt" 2>/dev/null
expect "$(sed -n '/^near/p' "$dir/single/flows.csv")" "$(sed -n '3,$p' "$dir/one/runs/near/seed-3/flows.csv")" "flows.csv"
grep -q "$(grep -o 'trace .*' "$dir/single.txt" | head -n 1)" "$dir/one/runs/near/seed-3/log.txt" || fail "another run"

test_case "results do not depend on how many run beside each other"
sim --seeds 1..5 -j 2 --out "$dir/two" "$dir/lossy.ini" >"$dir/two.txt" 2>/dev/null
cmp "$dir/one.txt" "$dir/two.txt" || fail "another table"
expect "$(in_sweep one)" "$(in_sweep two)" "the files"

test_case "shards that are collected give the same files"
for i in 1 2 3; do
  sim --seeds 1..5 --shard $i/3 --out "$dir/shard$i" "$dir/lossy.ini" >"$dir/shard$i.txt" 2>&1 || fail "$(cat "$dir/shard$i.txt")"
done
expect "4 3 3" "$(for i in 1 2 3; do find "$dir/shard$i/runs" -name flows.csv | wc -l; done | xargs)" "runs by shard"
sim --collect --out "$dir/all" "$dir"/shard[123] >"$dir/all.txt" 2>"$dir/all.err" || fail "$(cat "$dir/all.err")"
cmp "$dir/one.txt" "$dir/all.txt" || fail "another table"
expect "$(in_sweep one)" "$(in_sweep all)" "the files"

test_case "shards that are missing are named"
status=0
sim --collect --out "$dir/some" "$dir"/shard[13] >"$dir/some.txt" 2>"$dir/some.err" || status=$?
expect 1 "$status" "status"
expect "3" "$(grep -c '^# missing: ' "$dir/some.txt")" "missing runs: $(cat "$dir/some.txt")"
expect "7 of 10 runs complete" "$(tail -n 1 "$dir/some.txt" | cut -d ';' -f 1)" "the last line"

test_case "a job array gives the same files"
for id in 4 5; do
  SLURM_ARRAY_TASK_ID=$id SLURM_ARRAY_TASK_MIN=4 SLURM_ARRAY_TASK_MAX=5 SLURM_ARRAY_TASK_COUNT=2 \
    "$scenario/sweep.sbatch" "$dir/lossy.ini" 1..5 "$dir/array" >"$dir/array.txt" 2>&1 || fail "$(cat "$dir/array.txt")"
done
sim --collect --out "$dir/array" "$dir/array" >"$dir/array.txt" || fail "collect"
cmp "$dir/one.txt" "$dir/array.txt" || fail "another table"
expect "$(in_sweep one)" "$(in_sweep array)" "the files"

test_case "--resume runs what is missing or partial, and nothing else"
cp -r "$dir/one" "$dir/again"
rm -r "$dir/again/runs/near/seed-2"
mkdir "$dir/again/runs/near/seed-2.part"
echo cut >"$dir/again/runs/near/seed-2.part/flows.csv"
sed -i 's/"end": "flows done"/"end": "signal"/; s/"partial": false/"partial": true, "reason": "SIGTERM"/' "$dir/again/runs/far/seed-5/summary.json"
before=$(stat -c %i "$dir/again/runs/near/seed-1" "$dir/again/runs/far/seed-5")
sim --seeds 1..5 --resume --out "$dir/again" "$dir/lossy.ini" >"$dir/again.txt" 2>/dev/null
cmp "$dir/one.txt" "$dir/again.txt" || fail "another table"
expect "$(in_sweep one)" "$(in_sweep again)" "the files"
after=$(stat -c %i "$dir/again/runs/near/seed-1" "$dir/again/runs/far/seed-5")
expect "$(head -n 1 <<<"$before")" "$(head -n 1 <<<"$after")" "a run that was complete"
[ "$(tail -n 1 <<<"$before")" != "$(tail -n 1 <<<"$after")" ] || fail "a partial run was kept"

test_case "runs with another content of a file that the scenario names are not mixed"
mkdir "$dir/named"
cat >"$dir/named/run.ini" <<'INI'
[topology]
kind = star
hosts = 2
[load all]
pattern = trace
file = flows.csv
INI
echo 0,h0,h1,64K >"$dir/named/flows.csv"
for i in 1 2; do sim --seeds 1..2 --shard $i/2 --out "$dir/named/$i" "$dir/named/run.ini" >/dev/null; done
expect "0 2 of 2 runs complete" "$(status=0; text=$(sim --collect --out "$dir/named/both" "$dir"/named/[12]) || status=$?; echo "$status $(tail -n 1 <<<"$text" | cut -d ';' -f 1)")" "shards of the same content"
sim --seeds 1..3 --resume --out "$dir/named/both" "$dir/named/run.ini" >/dev/null || fail "the same content"
echo 0,h0,h1,128K >"$dir/named/flows.csv"
expect "2 rocefs: $dir/named/both has runs of another configuration" "$(outcome_of sim --seeds 1..3 --resume --out "$dir/named/both" "$dir/named/run.ini" | cut -d , -f 1)" "--resume"
expect "2 rocefs: $dir/named/2 has runs of another configuration" "$(outcome_of sim --seeds 1..2 --shard 2/2 --out "$dir/named/2" "$dir/named/run.ini" | cut -d , -f 1)" "--shard"
sim --seeds 1..2 --shard 2/2 --out "$dir/named/3" "$dir/named/run.ini" >/dev/null
expect "2 rocefs: $dir/named/1 and $dir/named/3 are of different sweeps" "$(outcome_of sim --collect --out "$dir/named/mixed" "$dir"/named/[13])" "--collect"
head_of() { sim "$dir/named/run.ini" | head -n 1; }
before=$(head_of)
echo 0,h0,h1,64K >"$dir/named/flows.csv"
[ "$before" != "$(head_of)" ] || fail "one head for both: $before"

test_case "--resume --view makes the recordings that are missing, and the same results"
cp -a "$dir/one" "$dir/viewed"
sim --seeds 1..5 -j2 --resume --view --out "$dir/viewed" "$dir/lossy.ini" >/dev/null 2>"$dir/said" || fail "$(cat "$dir/said")"
expect 10 "$(find "$dir/viewed" -name 'view-*.jsonl' | wc -l)" "recordings"
cmp "$dir/one/summary.json" "$dir/viewed/summary.json" || fail "another summary"
grep -q 'id="network"' "$dir/viewed/report.html" || fail "no network in the report"

test_case "another configuration is refused"
sed 's/0.01/0.02/' "$dir/lossy.ini" >"$dir/other.ini"
status=0
sim --seeds 1..5 --resume --out "$dir/again" "$dir/other.ini" >/dev/null 2>"$dir/other.err" || status=$?
expect 2 "$status" "status"
grep -q "again has runs of another configuration" "$dir/other.err" || fail "$(cat "$dir/other.err")"
sim --seeds 1 --shard 1/2 --out "$dir/other" "$dir/other.ini" >/dev/null 2>&1
status=0
sim --collect --out "$dir/mixed" "$dir/shard1" "$dir/other" 2>"$dir/mixed.err" >/dev/null || status=$?
expect 2 "$status" "status"
grep -q "are of different sweeps" "$dir/mixed.err" || fail "$(cat "$dir/mixed.err")"

test_case "a signal ends a sweep, which keeps what it knows"
# Flow a ends at once: when its line is there, the run is on its way.
sed 's/count=50/count=200000/; s/^f = /a = write h1 h0 size=1K\nf = /' "$dir/lossy.ini" >"$dir/long.ini"
"$ROCEFS" sim --seeds 1..3 -j 2 --out "$dir/cut" "$dir/long.ini" >"$dir/cut.txt" 2>"$dir/cut.err" &
pid=$!
await grep -qs ^near,a, "$dir/cut/runs/near/seed-1.part/flows.csv"
kill -TERM $pid
status=0
wait $pid || status=$?
expect 1 "$status" "status: $(cat "$dir/cut.err")"
grep -q "^# partial: near, seed 1: .*the sweep was stopped: 1 of 2 flows still run" "$dir/cut.txt" || fail "$(cat "$dir/cut.txt")"
expect partial "$(head -n 1 "$dir/cut/runs/near/seed-1/flows.csv" | awk '{print $NF}')" "the mark of a run"
expect "" "$(find "$dir/cut/runs" -name '*.part')" "runs without an end"

test_case "the report names the files of its curves"
grep -qF "; runs/near/seed-1/series.csv, runs/far/seed-1/series.csv have all.</p>" "$dir/one/report.html" || fail "$(grep -A1 neighbours "$dir/one/report.html")"
cp -r "$dir/one" "$dir/second"
sed -i 's/"end": "flows done"/"end": "signal"/; s/"partial": false/"partial": true, "reason": "SIGTERM"/' "$dir/second/runs/near/seed-1/summary.json"
sim --collect --out "$dir/second" "$dir/second" >/dev/null 2>&1 && fail "status 0 with a partial run"
grep -qF "; runs/near/seed-2/series.csv, runs/far/seed-1/series.csv have all.</p>" "$dir/second/report.html" || fail "$(grep -A1 neighbours "$dir/second/report.html")"

test_case "a mistake in the file ends a sweep, with its line"
sed 's/h0 h1 size/h0 h9 size/' "$dir/lossy.ini" >"$dir/bad.ini"
status=0
sim --seeds 1..5 --out "$dir/bad" "$dir/bad.ini" >/dev/null 2>"$dir/bad.err" || status=$?
expect 2 "$status" "status"
expect "rocefs: near, seed 1: bad.ini:8: f: no device h9" "$(head -n 1 "$dir/bad.err")" "the reason"
expect "rocefs: 9 runs were not begun" "$(sed -n 2p "$dir/bad.err")" "the others"
# Nothing has run there, so the directory takes the file without the mistake.
sim --seeds 1..5 --out "$dir/bad" "$dir/lossy.ini" >"$dir/mended.txt" 2>"$dir/bad.err" || fail "$(cat "$dir/bad.err")"
cmp "$dir/one.txt" "$dir/mended.txt" || fail "another table"
expect "$(in_sweep one)" "$(in_sweep bad)" "the files"

test_case "options that do not fit are refused"
refused() {  # REASON OPTION…
  local reason=$1 status=0
  shift
  sim "$@" >/dev/null 2>"$dir/refused.err" || status=$?
  expect 2 "$status" "status of $*"
  expect "rocefs: $reason" "$(head -n 1 "$dir/refused.err")" "$*"
}
refused "--seeds requires --out" --seeds 1..2 "$dir/lossy.ini"
refused "-o seed= and --seeds exclude each other" --seeds 1..2 -o seed=1 --out "$dir/x" "$dir/lossy.ini"
refused "-j, --resume and --shard require --seeds" -j 2 --out "$dir/x" "$dir/lossy.ini"
refused "-j, --resume and --shard require --seeds" --resume --out "$dir/x" "$dir/lossy.ini"
refused "--seeds: '2..1': the range is empty" --seeds 2..1 --out "$dir/x" "$dir/lossy.ini"
refused "--shard: '3/2': I/N is wanted, with I from 1 to N" --seeds 1 --shard 3/2 --out "$dir/x" "$dir/lossy.ini"
refused "--jobs: '0': a number from 1 to 1024 is wanted" --seeds 1 --jobs 0 --out "$dir/x" "$dir/lossy.ini"
refused "--collect requires --out" --collect "$dir/one"
refused "--collect: the directories of the shards are wanted" --collect --out "$dir/x"
refused "--collect takes --out and directories alone" --collect --seeds 1 --out "$dir/x" "$dir/one"
refused "$dir/nowhere/sweep.json: No such file or directory" --collect --out "$dir/x" "$dir/nowhere"
