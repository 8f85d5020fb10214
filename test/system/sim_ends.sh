#!/bin/bash
# rocefs sim: whatever ends a run, what is known is printed and written, and marked as partial.
. "$(dirname "$0")/lib/common.bash"
sources=$(realpath "$(dirname "$0")/../pcc/plugins") include=$(realpath "$(dirname "$0")/../..")
sim() { "$ROCEFS" sim "$@"; }
plugin() {  # NAME
  mkdir -p "$dir/$1"
  "${CXX:-c++}" -std=c++20 -O1 -shared -fPIC -I"$include" "$sources/$1.cc" -o "$dir/$1/$1.so"
}
# Flow a ends at once, flow b never: what a run that is cut off knows.
cat >"$dir/long.ini" <<'INI'
[sim]
limit = 3600s
[topology]
kind = star
hosts = 3
rate = 100G
[flows]
a = write h0 h2 size=64K
b = write h1 h2 size=1M count=100000000
[sample]
interval = 100us
sent = kernel/debug/rocefs/links/h1-sw_0/bytes
[variant one]
[variant two]
INI
head_of() { head -n 1 "$dir/$1/flows.csv" | awk '{print $NF}'; }

test_case "a signal ends a run, which keeps what it knows"
for signal in INT TERM HUP; do
  # A shell's background job ignores SIGINT, which the program respects.
  env --default-signal=INT,HUP "$ROCEFS" sim "$dir/long.ini" --out "$dir/$signal" >"$dir/$signal.txt" 2>"$dir/$signal.err" &
  pid=$!
  await grep -qs ^one,a, "$dir/$signal/flows.csv"
  kill "-$signal" "$pid"
  status=0
  wait "$pid" || status=$?
  expect 1 "$status" "status after SIG$signal: $(cat "$dir/$signal.err")"
  grep -q "^rocefs: .*long.ini: the run of one: SIG$signal: 1 of 2 flows still run after " "$dir/$signal.err" || fail "the reason: $(cat "$dir/$signal.err")"
  grep -q "^rocefs: .*long.ini: two was not run" "$dir/$signal.err" || fail "the other variant: $(cat "$dir/$signal.err")"
  grep -q "^# partial: .*SIG$signal" "$dir/$signal.txt" || fail "the table's mark: $(cat "$dir/$signal.txt")"
  expect "a:done b:running" "$(awk '$1 ~ /^[ab]$/ {print $1 ":" $NF}' "$dir/$signal.txt" | xargs)" "the table"
  expect partial "$(head_of $signal)" "the mark of flows.csv"
  expect 'one,a "done" one,b "running"' "$(awk -F, 'NR > 2 {print $1 "," $2, $13}' "$dir/$signal/flows.csv" | paste -sd ' ')" "flows.csv"
  grep -q $'\r' "$dir/$signal.err" && fail "a progress line where no terminal is: $(cat -v "$dir/$signal.err")"
  [ "$(wc -l <"$dir/$signal/series.csv")" -gt 2 ] || fail "no samples: $(cat "$dir/$signal/series.csv")"
done

test_case "a signal that was ignored stays ignored"
env --ignore-signal=INT "$ROCEFS" sim "$dir/long.ini" --out "$dir/ignored" >"$dir/ignored.txt" 2>&1 &
pid=$!
await grep -qs ^one,a, "$dir/ignored/flows.csv"
kill -INT "$pid"
kill -TERM "$pid"
status=0
wait "$pid" || status=$?
expect 1 "$status" "status"
grep -q "^# partial: .*: SIGTERM: " "$dir/ignored.txt" || fail "$(cat "$dir/ignored.txt")"

test_case "a full disk ends no run, and the file is named"
sed 's/count=100000000/count=10/' "$dir/long.ini" >"$dir/short.ini"
mkdir "$dir/full"
ln -s /dev/full "$dir/full/flows.csv"
expect 1 "$(sim "$dir/short.ini" --out "$dir/full" >"$dir/full.txt" 2>"$dir/full.err"; echo $?)" "status"
expect "rocefs: $(realpath "$dir")/full/flows.csv: No space left on device" "$(grep ^rocefs "$dir/full.err")" "the reason"
expect "2 of 2 flows done 2 of 2 flows done" "$(grep -o '.* flows done' "$dir/full.txt" | xargs)" "the table"
[ -s "$dir/full/series.csv" ] || fail "the other files: $(ls "$dir/full")"

test_case "standard files that are closed take nothing of the results"
sim "$dir/short.ini" --out "$dir/open" >/dev/null 2>&1
for closed in '>&-' '2>&-' '>&- 2>&-' '0<&- >&- 2>&-'; do
  status=0
  eval "timeout 60 \"\$ROCEFS\" sim \"\$dir/short.ini\" --out \"\$dir/closed\" >\"\$dir/closed.txt\" 2>\"\$dir/closed.err\" $closed" || status=$?
  case $closed in 2*) wanted=0 ;; *) wanted=1 ;; esac
  expect $wanted $status "status with $closed"
  for file in flows.csv links.csv series.csv summary.json; do
    cmp "$dir/open/$file" "$dir/closed/$file" || fail "$file with $closed"
  done
done
sim "$dir/short.ini" --out "$dir/closed" 2>"$dir/closed.err" >&- || true
grep -q "^rocefs: stdout: Bad file descriptor" "$dir/closed.err" || fail "the reason: $(cat "$dir/closed.err")"

test_case "a plugin that dies fails its variant, and the others run"
[ -x "$(dirname "$ROCEFS")/mango-pccd" ] || skip "no mango-pccd here"
plugin divides
cat >"$dir/plugin.ini" <<INI
[topology]
kind = star
hosts = 3
[flows]
f{1..2} = write h{1..2} h0 size=64K count=100
[variant dies]
class/infiniband/h{1..2}/pcc/plugin_dir = $dir/divides
class/infiniband/h{1..2}/pcc/load = 1
class/infiniband/h{1..2}/pcc/algo = divides
class/infiniband/h{1..2}/pcc/state = start
[variant lives]
INI
expect 1 "$(sim "$dir/plugin.ini" --out "$dir/dies" >"$dir/dies.txt" 2>"$dir/dies.err"; echo $?)" "status: $(cat "$dir/dies.err")"
grep -q "^rocefs: .*plugin.ini: the run of dies: .*h[12]: PCC ended: .*SIGFPE" "$dir/dies.err" || fail "the reason: $(cat "$dir/dies.err")"
grep -q "^  .*PCC started: divides" "$dir/dies.err" || fail "its log: $(cat "$dir/dies.err")"
grep -q "^# partial: .*SIGFPE" "$dir/dies.txt" || fail "the table's mark: $(cat "$dir/dies.txt")"
expect "2 of 2 flows done" "$(tail -n 1 "$dir/dies.txt" | grep -o '.* flows done')" "the other variant"
expect partial "$(head_of dies)" "the mark of flows.csv"
# The death happens at the time of the call, whenever the simulation hears of it.
for run in 1 2 3; do
  sim "$dir/plugin.ini" 2>/dev/null | sed 's/pid [0-9]*/pid/; /CPU second/d' >"$dir/again.$run" || true
  cmp -s "$dir/again.1" "$dir/again.$run" || fail "run $run differs: $(diff "$dir/again.1" "$dir/again.$run")"
done

# run FILE EXPRESSION: of the runs `r` of a summary.json, by variant; of a sweep the last seed's.
run() {
  python3 -c 'import json, sys
r = {run["variant"]: run for run in json.load(open(sys.argv[1]))["runs"]}
print(eval(sys.argv[2]))' "$1" "$2"
}
grep -q "<h2>Log of dies, seed 1</h2>" "$dir/dies/report.html" || fail "no log in the report"
grep -q "PCC started: divides" "$dir/dies/report.html" || fail "another log in the report"
needs python3
expect "failed flows done False" "$(run "$dir/dies/summary.json" 'r["dies"]["end"], r["lives"]["end"], "log" in r["lives"]' | tr -d "(),'")" "the ends"
expect True "$(run "$dir/dies/summary.json" 'any("PCC started: divides" in line for line in r["dies"]["log"])')" "the log in the summary"

test_case "a plugin that is refused fails its variant, and the others run"
mkdir "$dir/refused"
echo text >"$dir/refused/none.so"
sed "s|$dir/divides|$dir/refused|" "$dir/plugin.ini" >"$dir/refused.ini"
expect 2 "$(sim "$dir/refused.ini" --out "$dir/no" >"$dir/no.txt" 2>"$dir/no.err"; echo $?)" "status: $(cat "$dir/no.err")"
grep -q "^rocefs: .*refused.ini:8: class/infiniband/h1/pcc/load: none.so: " "$dir/no.err" || fail "the reason: $(cat "$dir/no.err")"
grep -q "^# partial: .*none.so" "$dir/no.txt" || fail "the table's mark: $(cat "$dir/no.txt")"
expect "2 of 2 flows done" "$(tail -n 1 "$dir/no.txt" | grep -o '.* flows done')" "the other variant"

test_case "a plugin that is refused fails its variant in a sweep, and the others have their means"
[ -d "$dir/refused" ] || skip "no mango-pccd here"
expect 2 "$(sim --seeds 1..2 "$dir/refused.ini" --out "$dir/sweep" >"$dir/sweep.txt" 2>"$dir/sweep.err"; echo $?)" "status: $(cat "$dir/sweep.err")"
for seed in 1 2; do
  grep -q "^# partial: dies, seed $seed: refused.ini:8: class/infiniband/h1/pcc/load: none.so: " "$dir/sweep.txt" || fail "no mark of seed $seed: $(cat "$dir/sweep.txt")"
  grep -q "^rocefs: dies, seed $seed: refused.ini:8: " "$dir/sweep.err" || fail "the reason of seed $seed: $(cat "$dir/sweep.err")"
done
grep -q "^2 of 4 runs complete" "$dir/sweep.txt" || fail "the others: $(cat "$dir/sweep.txt")"
grep -q "Partial: dies, seed 2: .*none.so" "$dir/sweep/report.html" || fail "the report"

test_case "a warning of the daemon's log is in the table"
cat >"$dir/warns.ini" <<INI
[topology]
kind = star
hosts = 3
[knobs]
kernel/debug/rocefs/fabric/sw_0/ecn/enable = 1
kernel/debug/rocefs/fabric/sw_0/ecn/kmax = 20M
kernel/debug/rocefs/fabric/sw_0/ecn/kmin = 12M
[flows]
f = write h1 h0
INI
sim "$dir/warns.ini" >"$dir/warns.txt" 2>"$dir/warns.err" || fail "$(cat "$dir/warns.err")"
grep -q "^dmesg: \[    0.000000\] rocefs: sw_0: " "$dir/warns.txt" || fail "no warning: $(cat "$dir/warns.txt")"

test_case "warnings are of the settings with which a run begins"
cat >"$dir/headroom.ini" <<INI
[topology]
kind = star
hosts = 3
rate = 100G
delay = 100us
[flows]
f = write h1 h0
[variant PFC]
[variant no_PFC]
kernel/debug/rocefs/fabric/sw_0/pfc/enable = 0
INI
sim "$dir/headroom.ini" >"$dir/headroom.txt" 2>"$dir/headroom.err" || fail "$(cat "$dir/headroom.err")"
expect PFC "$(awk '/^# [a-zA-Z_]+$/ {variant = $2} / PFC headroom / {print variant}' "$dir/headroom.txt")" "variants with a warning"

test_case "a terminal shows the time to go"
needs script
sed 's/^limit = .*/until = 100s/' "$dir/long.ini" >"$dir/timed.ini"
script -qefc "echo \$\$ >$dir/timed.pid; exec $ROCEFS sim $dir/timed.ini" "$dir/timed.log" >/dev/null 2>&1 </dev/null &
pid=$!
await grep -qsE 'one: [0-9.]+ ms, 1 of 2 flows have ended, [0-9]+ (s|min|h).* to go' "$dir/timed.log"
kill -TERM "$(cat "$dir/timed.pid")"
wait $pid || true

test_case "a terminal shows the time to go of loads, too"
needs script
cat >"$dir/load.ini" <<'INI'
[sim]
limit = 3600s
[topology]
kind = star
hosts = 3
[load many]
pattern = poisson
load = 0.5
size = 10000
flows = 100000000
INI
script -qefc "echo \$\$ >$dir/load.pid; exec $ROCEFS sim $dir/load.ini" "$dir/load.log" >/dev/null 2>&1 </dev/null &
pid=$!
await grep -qsE 'load.ini: [0-9.]+ ms, [0-9]+ of [0-9]+ flows have ended, [0-9]+ (s|min|h).* to go' "$dir/load.log"
kill -TERM "$(cat "$dir/load.pid")"
wait $pid || true

test_case "a mistake in the file leaves the results of an earlier run"
sed '/^\[variant/d; /^b = /d; /^limit/d' "$dir/long.ini" >"$dir/right.ini"
sim "$dir/right.ini" --out "$dir/kept" >/dev/null 2>"$dir/said" || fail "$(cat "$dir/said")"
cp -r "$dir/kept" "$dir/before"
sed 's/^a = .*/a = write h0 h9 size=64K/' "$dir/right.ini" >"$dir/wrong.ini"
status=0
sim "$dir/wrong.ini" --out "$dir/kept" >/dev/null 2>"$dir/said" || status=$?
expect 2 "$status" "status: $(cat "$dir/said")"
diff -r "$dir/before" "$dir/kept" || fail "the results are others"

test_case "flows that have not started are told from those that run"
cat >"$dir/later.ini" <<'INI'
[sim]
limit = 1ms
[topology]
kind = star
hosts = 3
[flows]
a = write h0 h2 size=64K
b = write h0 h2 size=64K start=2ms
[load web]
pattern = poisson
load = 0.1
size = 1000
flows = 5
start = 3ms
INI
sim "$dir/later.ini" >"$dir/later.txt" 2>"$dir/said" && fail "the limit was not met"
grep -q "later.ini: 0 of 2 flows still run after 1ms, 1 has not started, load web has flows to come" "$dir/said" || fail "$(cat "$dir/said")"
sed '/^b = /d' "$dir/later.ini" >"$dir/loads.ini"
sed -n '/^\[load/,$s/web/mail/p' "$dir/later.ini" >>"$dir/loads.ini"
sed -n '/^pattern/,$p' "$dir/later.ini" >>"$dir/loads.ini"
sim "$dir/loads.ini" >"$dir/later.txt" 2>"$dir/said" && fail "the limit was not met"
grep -q "loads.ini: 0 of 1 flows still run after 1ms, loads web, mail have flows to come" "$dir/said" || fail "$(cat "$dir/said")"

test_case "a full disk leaves the report of an earlier run whole"
needs_root
mkdir "$dir/tight"
mount -t tmpfs -o size=1m tight "$dir/tight"
at_end umount -l "$dir/tight"
sim "$dir/right.ini" --out "$dir/tight" >/dev/null 2>"$dir/said" || fail "$(cat "$dir/said")"
cp "$dir/tight/report.html" "$dir/whole.html"
{ cat "$dir/right.ini"; seq -f "# a comment that makes the report longer, %g" 20000; } >"$dir/longer.ini"
sim "$dir/longer.ini" --out "$dir/tight" >/dev/null 2>"$dir/said" && fail "status 0"
grep -q "/tight/report.html: No space left on device" "$dir/said" || fail "the reason: $(cat "$dir/said")"
cmp "$dir/whole.html" "$dir/tight/report.html" || fail "the earlier report: $(ls -l "$dir/tight")"
expect "" "$(find "$dir/tight" -name '*.new')" "files without an end"
