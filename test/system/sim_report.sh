#!/bin/bash
# rocefs sim --out: report.html is one page that needs no network, and a browser draws its curves.
. "$(dirname "$0")/lib/common.bash"
cat >"$dir/page.ini" <<'INI'
[sim]
title = 5 < 6 & </script> "quoted"
[topology]
kind = star
hosts = 3
rate = 100G
[flows]
small{1..3} = write h1 h0 size=2000 start={1..3}us
large{1..3} = write h2 h0 size=64K count=20
[sample]
interval = 10us
queue = kernel/debug/rocefs/fabric/sw_0/ports/1/queue/0/bytes
h0 = kernel/debug/rocefs/links/sw_0-h0/bytes rate
[plot]
Queue before h0 = queue
Both = queue h0
[knobs]
kernel/debug/rocefs/links/h2-sw_0/loss = 0.002
kernel/debug/rocefs/fabric/sw_0/ecn/kmax = 8M
kernel/debug/rocefs/fabric/sw_0/ecn/kmin = 4M
kernel/debug/rocefs/fabric/sw_0/ecn/enable = 1
[variant near]
[variant far]
kernel/debug/rocefs/links/h{1..2}-sw_0/delay = 10us
INI
"$ROCEFS" sim "$dir/page.ini" --out "$dir/one" >"$dir/one.txt" 2>"$dir/one.err" || fail "$(cat "$dir/one.err")"
"$ROCEFS" sim "$dir/page.ini" --out "$dir/again" >/dev/null 2>&1
"$ROCEFS" sim "$dir/page.ini" --out "$dir/seen" --view >/dev/null 2>"$dir/seen.err" || fail "$(cat "$dir/seen.err")"
"$ROCEFS" sim "$dir/page.ini" --out "$dir/seen_again" --view >/dev/null 2>&1
"$ROCEFS" sim --view --seeds 1..3 "$dir/page.ini" --out "$dir/sweep" >"$dir/sweep.txt" 2>"$dir/sweep.err" || fail "$(cat "$dir/sweep.err")"
page=$dir/one/report.html
# dom FILE: the document after its scripts have run.
dom() {
  HOME=$dir timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$dir/profile" --dump-dom "file://$(realpath "$1")" 2>"$dir/browser.err" ||
    fail "$browser: $(tail -n 5 "$dir/browser.err")"
}
drawn() { sed '/<script/,$d' "$1"; }
curves() { grep -oE '<path class="curve"[^>]*>' "$1"; }

test_case "the page names its source, and the same run gives the same page"
cmp "$page" "$dir/again/report.html" || fail "another page"
cmp "$dir/seen/report.html" "$dir/seen_again/report.html" || fail "another page with recordings"
for one in near far; do cmp "$dir/seen/view-$one.jsonl" "$dir/seen_again/view-$one.jsonl" || fail "another recording of $one"; done
hash=$(sed -n '1s/.*configuration //p' "$dir/one.txt")
grep -qF "page.ini, seed 1, configuration $hash" "$page" || fail "no origin"
grep -qF "page.ini, seeds 1..3, configuration $hash" "$dir/sweep/report.html" || fail "no origin of the sweep"
grep -qF 'h{1..2}-sw_0/delay = 10us' "$page" || fail "no text of the file"
grep -qF '<h1>5 &lt; 6 &amp; &lt;/script&gt; &quot;quoted&quot;</h1>' "$page" || fail "the title: $(grep '<h1>' "$page")"

test_case "the page is UTF-8, whatever the title is"
sed $'s/^title = .*/title = caf\xc3\xa9 \xff/; /^\\[variant/,$d; s/count=20/count=1/' "$dir/page.ini" >"$dir/octets.ini"
"$ROCEFS" sim "$dir/octets.ini" --view --out "$dir/octets" >/dev/null 2>"$dir/octets.err" || fail "$(cat "$dir/octets.err")"
for file in report.html summary.json view.jsonl; do
  iconv -f UTF-8 -t UTF-8 "$dir/octets/$file" >/dev/null || fail "$file is not UTF-8"
done
grep -qF $'<h1>caf\xc3\xa9 ?</h1>' "$dir/octets/report.html" || fail "the title: $(grep -a '<h1>' "$dir/octets/report.html")"

test_case "the page loads nothing"
grep -qF "default-src 'none'" "$page" || fail "no policy"
for page in "$dir/one/report.html" "$dir/seen/report.html"; do expect "" "$(grep -oE '(src|href)="?[^" >]*|@import|url\((http|//)[^)]*|https?://[^ "'"'"']*' "$page" | grep -v '^http://www.w3.org/2000/svg' | xargs)" "what it refers to"; done

test_case "the tables are there without scripts"
expect 2 "$(grep -cE '^<tr><td>(near|far)</td><td>1</td><td>flows done</td>.*<td>6 done</td>' "$page")" "the runs"
for variant in near far; do
  mean=$(sed -n "/^# $variant/,/trace/s/.*slowdown \([0-9.]*\) on average.*/\1/p" "$dir/one.txt")
  grep -qE "^<tr><td>$variant</td><td>all</td><td>6</td><td>$mean</td>" "$page" || fail "no slowdown of $variant, $mean"
done
grep -qE '^<tr><td>far</td><td>all</td><td>6</td><td>[0-9.]+ <small>±' "$dir/sweep/report.html" || fail "no interval in the sweep's"

grep -qF "; series.csv has all.</p>" "$page" || fail "the file of the curves"

test_case "rounds of collectives and faults are there"
cat >"$dir/rounds.ini" <<'INI'
[topology]
kind = star
hosts = 3
rate = 100G
[load ring]
pattern = ring-allreduce
size = 64K
rounds = 2
[inject]
lost = drop h1-sw_0 opcode=data skip=3
INI
"$ROCEFS" sim "$dir/rounds.ini" --out "$dir/rounds" >"$dir/rounds.txt" 2>"$dir/said" || fail "$(cat "$dir/said")"
"$ROCEFS" sim --seeds 1,2 "$dir/rounds.ini" --out "$dir/rounds_sweep" >"$dir/rounds_sweep.txt" 2>"$dir/said" || fail "$(cat "$dir/said")"
times=$(awk '$1 == "ring" {print $3 " " $4}' "$dir/rounds.txt")
grep -qE "^<tr><td>-</td><td>ring</td><td>1</td><td>2</td><td>$times</td>" "$dir/rounds/report.html" || fail "no rounds of $times"
grep -qE "^<tr><td>-</td><td>ring</td><td>2</td><td>2</td><td>[0-9.]+ [mu]s ±" "$dir/rounds_sweep/report.html" || fail "no rounds of the sweep: $(cat "$dir/rounds_sweep.txt")"
grep -q "Rounds" "$page" && fail "rounds without a collective"
fault=$(grep '^fault lost fired 1: ' "$dir/rounds.txt")
grep -qF "seed 1: $fault" "$dir/rounds/report.html" || fail "no $fault"
grep -qF "seed 2: $fault" "$dir/rounds_sweep/report.html" || fail "no $fault of seed 2"

test_case "a partial run is marked"
sed 's/^title.*/limit = 100us/' "$dir/page.ini" >"$dir/cut.ini"
"$ROCEFS" sim "$dir/cut.ini" --out "$dir/cut" >/dev/null 2>&1 && fail "the limit was not met"
grep -qE '^<p>Partial: near, seed 1: .*flows still run after 100us</p>' "$dir/cut/report.html" || fail "no mark: $(grep Partial "$dir/cut/report.html")"
expect 4 "$(grep -cE '^<tr><td>(near|far)</td><td>2K</td><td>3</td><td>[0-9.]+' "$dir/cut/report.html")" "FCT and slowdown of the flows that are done"
grep -qE '"sizes":\[\{"variant":"near","rows":\[\{"size":[0-9]+,"p50":[0-9.]+' "$dir/cut/report.html" || fail "no curve by size"

test_case "a long series with gaps keeps its values"
cat >"$dir/gaps.ini" <<'INI'
[sim]
until = 10ms
[topology]
kind = star
hosts = 2
rate = 100G
[load web]
pattern = poisson
load = 0.05
size = 1000
[sample]
interval = 1us
idle = kernel/debug/rocefs/links/sw_0-h0/bytes rate below=1
INI
"$ROCEFS" sim "$dir/gaps.ini" --out "$dir/gaps" >/dev/null 2>"$dir/said" || fail "$(cat "$dir/said")"
python3 - "$dir/gaps/series.csv" "$dir/gaps/report.html" <<'PY' || fail "the curve"
import json, re, sys
values = [line.split(',')[2].strip() for line in list(open(sys.argv[1]))[2:]]
assert len(values) > 8000 and values.count('') > 1000 and values.count('0') > 1000, (len(values), values.count(''))
data = json.loads(re.search('<script type="application/json" id="data">(.*)</script>', open(sys.argv[2]).read()).group(1))
points = data['series'][0]['samples']['idle']
parts = 2000  # of 4000 points
def known(part):
    return any(values[len(values) * part // parts:len(values) * (part + 1) // parts])
gaps = [part for part in range(parts) if not known(part)]
assert len([y for _, y in points if y is None]) == len(gaps), (points[:20], len(gaps))
PY

test_case "the paths of curves go around gaps, and a lone point is a dot"
needs node
cp "$(dirname "$0")/../../tools/page/plot.js" "$dir/plot.mjs"
cat >"$dir/gaps.mjs" <<'JS'
import assert from 'node:assert';
import {curve, thinned} from './plot.mjs';
const same = x => x;
const points = [1, NaN, 3, NaN, NaN, 6, 7].map((y, x) => ({x, y}));
assert.equal(curve(points, same, same, false), 'M0.0,1.0H1.5M2.0,3.0H3.5M5.0,6.0L6.0,7.0');
const long = Array.from({length: 100}, (_, x) => ({x, y: x % 5 || x < 10 ? NaN : x}));
assert.deepEqual(thinned(long, 10).map(point => point.y), [NaN, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95]);
JS
node "$dir/gaps.mjs" >"$dir/said" 2>&1 || fail "$(cat "$dir/said")"

test_case "a browser draws the curves of all variants"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "no chromium here"
dom "$page" >"$dir/dom"
# CDF, two by size, a panel of one sample and one of two: 2 variants each.
expect 12 "$(curves "$dir/dom" | wc -l)" "curves"
expect "6 6" "$(curves "$dir/dom" | grep -c 'data-variant="near"') $(curves "$dir/dom" | grep -c 'data-variant="far"')" "by variant"
expect 0 "$(curves "$dir/dom" | grep -cvE ' d="M[0-9.]+,[0-9.]+([LHV][0-9.,]+)+"')" "curves that are not drawn: $(curves "$dir/dom")"
drawn "$dir/dom" | grep -q 'NaN' && fail "NaN: $(drawn "$dir/dom" | grep -o '.\{50\}NaN' | head -n 3)"
dom "$dir/sweep/report.html" >"$dir/dom_sweep"
expect 12 "$(curves "$dir/dom_sweep" | wc -l)" "curves of the sweep"

test_case "zooming moves the curves over time, and hiding a variant removes its own"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "no chromium here"
sed 's|</body>|<script>document.getElementById("zoom-in").click()</script></body>|' "$page" >"$dir/zoomed.html"
dom "$dir/zoomed.html" >"$dir/dom_zoomed"
expect 6 "$(diff <(curves "$dir/dom") <(curves "$dir/dom_zoomed") | grep -c '^<')" "curves that moved"
sed 's|</body>|<script>document.querySelector("#legend input").click()</script></body>|' "$page" >"$dir/hidden.html"
dom "$dir/hidden.html" >"$dir/dom_hidden"
expect "0 6" "$(curves "$dir/dom_hidden" | grep -c 'data-variant="near"') $(curves "$dir/dom_hidden" | grep -c 'data-variant="far"')" "curves"

test_case "--view: a recording has the counters of the run, look by look, and changes nothing else"
for file in flows.csv links.csv series.csv summary.json; do cmp "$dir/one/$file" "$dir/seen/$file" || fail "$file"; done
# Without [sample] the looks are at times at which the run takes no steps.
sed '/^\[sample\]/,/^Both/d' "$dir/page.ini" >"$dir/unsampled.ini"
"$ROCEFS" sim "$dir/unsampled.ini" --out "$dir/unsampled" >/dev/null 2>"$dir/said" || fail "$(cat "$dir/said")"
"$ROCEFS" sim "$dir/unsampled.ini" --out "$dir/looked_at" --view >/dev/null 2>&1
for file in flows.csv links.csv queues.csv summary.json; do cmp "$dir/unsampled/$file" "$dir/looked_at/$file" || fail "$file"; done
# The run ends after 0.34 ms, with a look each 10 us.
[ "$(wc -l <"$dir/looked_at/view-near.jsonl")" -gt 30 ] || fail "$(wc -l "$dir/looked_at/view-near.jsonl")"
grep -q 'comm\|npid' "$dir/looked_at/view-near.jsonl" && fail "the process is in the recording"
"$ROCEFS" sim "$dir/page.ini" --view 2>"$dir/said" >/dev/null && fail "--view without --out"
grep -qF -- "--view requires --out" "$dir/said" || fail "$(cat "$dir/said")"
for one in near far; do
  python3 - "$dir/seen/view-$one.jsonl" "$dir/seen/links.csv" "$one" 10000 <<'PY' || fail "the recording of $one"
import csv, json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
shape = lines[0]['shape']
assert [node['kind'] for node in shape['nodes']] == ['switch'] + ['device'] * 3, shape
assert len(shape['cables']) == 3
times, files = [], {}
for message in lines[1:]:
    for group in message['groups']:
        if 'paths' in group:
            paths, values = group['paths'], group['values']
            files[group['g']] = paths, values
        else:
            values = files[group['g']][1]
            for at, text in zip(group['c'][::2], group['c'][1::2]):
                assert values[at] != text
                values[at] = text
    times.append(int(files[0][1][0]))
# A look at each 10 us, and one at the end.
assert times[:-1] == list(range(0, times[-1], int(sys.argv[4]))), times
last = dict(zip(*files[0]))
rows = [row for row in csv.DictReader(line for line in open(sys.argv[2]) if line[0] != '#') if row['variant'] == sys.argv[3]]
assert len(rows) == 6
for row in rows:
    assert int(last['kernel/debug/rocefs/links/%s/bytes' % row['link']]) == int(row['bytes']), row
flows = dict(zip(*files[1]))
assert [flows['kernel/debug/rocefs/traffic/%s/state' % name] for name in ('small1', 'large3')] == ['done', 'done']
stores = [line for message in lines[1:] for line in message.get('stores', [])]
assert any(line.startswith('@2000 kernel/debug/rocefs/traffic/start=') and 'small2' in line for line in stores), stores
assert any('ecn/kmin' in line for message in lines[1:] for line in message.get('dmesg', []))
PY
done

test_case "--view: a recording that cannot be written is named, and the results are there"
mkdir -p "$dir/full/view-near.jsonl"
"$ROCEFS" sim "$dir/page.ini" --out "$dir/full" --view >"$dir/full.txt" 2>"$dir/said" && fail "status 0"
grep -qF "view-near.jsonl: Is a directory" "$dir/said" || fail "$(cat "$dir/said")"
cmp "$dir/full/flows.csv" "$dir/one/flows.csv" || fail "the flows"
cmp "$dir/full/view-far.jsonl" "$dir/seen/view-far.jsonl" || fail "the other recording"
grep -qF "view-near.jsonl is too large for this page" "$dir/full/report.html" && fail "a recording that is not there is called too large"

test_case "--view: on a full disk the recording gives its room to the results"
needs_root
mkdir -p "$dir/small"
mount -t tmpfs -o size=400k small "$dir/small"
at_end umount -l "$dir/small"
sed -e 's/hosts = 3/hosts = 160/' -e '/^\[variant/,$d' "$dir/unsampled.ini" >"$dir/large.ini"
"$ROCEFS" sim "$dir/large.ini" --out "$dir/small" --view >/dev/null 2>"$dir/said" && fail "status 0"
grep -qF "view.jsonl: No space left on device" "$dir/said" || fail "$(cat "$dir/said")"
[ -e "$dir/small/view.jsonl" ] && fail "the recording is there: $(ls -l "$dir/small")"
for file in flows.csv links.csv summary.json report.html; do [ -s "$dir/small/$file" ] || fail "$file: $(ls -l "$dir/small")"; done

test_case "--view: a device that is bound again is in the recording again"
cat >"$dir/rebind.ini" <<'INI'
[topology]
kind = star
hosts = 2
[sim]
until = 300us
[at]
50us = bus/pci/drivers/mango_core/unbind=0000:ac:00.0
150us = bus/pci/drivers/mango_core/bind=0000:ac:00.0
[sample]
interval = 20us
INI
"$ROCEFS" sim "$dir/rebind.ini" --out "$dir/rebound" --view >/dev/null 2>"$dir/said" || fail "$(cat "$dir/said")"
python3 - "$dir/rebound/view.jsonl" <<'PY' || fail "the files"
import json, sys
counts = [len(group['paths']) for line in list(open(sys.argv[1]))[1:] for group in json.loads(line)['groups'] if group['g'] == 0 and 'paths' in group]
assert len(counts) == 3 and counts[1] < counts[0] == counts[2], counts
PY

test_case "the page draws the network of each recording"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "no chromium here"
dom "$dir/seen/report.html" >"$dir/dom_seen"
expect 4 "$(grep -oE '<g class="node [a-z ]*"' "$dir/dom_seen" | wc -l)" "nodes"
expect 6 "$(grep -oE '<line [^>]*class="cable' "$dir/dom_seen" | wc -l)" "half lines of cables"
expect 12 "$(curves "$dir/dom_seen" | grep -c data-variant)" "curves of the figures"
grep -qE 'aria-label="switch sw_0: [0-9.]+ (B|KB|MB) of' "$dir/dom_seen" || fail "the switch"
expect "near far" "$(grep -oE '<option value="[01]">[a-z]*' "$dir/dom_seen" | cut -d'>' -f2 | xargs)" "the choice"
drawn "$dir/dom_seen" | grep -q 'NaN' && fail "NaN: $(drawn "$dir/dom_seen" | grep -o '.\{50\}NaN' | head -n 3)"
sed 's|</body>|<script>document.querySelector("\.network .node.device").dispatchEvent(new Event("click"))</script></body>|' "$dir/seen/report.html" >"$dir/selected.html"
dom "$dir/selected.html" >"$dir/dom_selected"
grep -qE '<th scope="row">h0-sw_0</th><td>[0-9.]+ [kMG]?b/s' "$dir/dom_selected" || fail "facts: $(grep -o '<div class="facts">.\{300\}' "$dir/dom_selected")"
dom "$dir/sweep/report.html" | grep -oE '<option value="[01]">[a-z]*' | cut -d'>' -f2 | xargs >"$dir/choices"
expect "near far" "$(cat "$dir/choices")" "the sweep's recordings"
