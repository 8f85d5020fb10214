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
[variant near]
[variant far]
kernel/debug/rocefs/links/h{1..2}-sw_0/delay = 10us
INI
"$ROCEFS" sim "$dir/page.ini" --out "$dir/one" >"$dir/one.txt" 2>"$dir/one.err" || fail "$(cat "$dir/one.err")"
"$ROCEFS" sim "$dir/page.ini" --out "$dir/again" >/dev/null 2>&1
"$ROCEFS" sim --seeds 1..3 "$dir/page.ini" --out "$dir/sweep" >"$dir/sweep.txt" 2>"$dir/sweep.err" || fail "$(cat "$dir/sweep.err")"
page=$dir/one/report.html
# dom FILE: the document after its scripts have run.
dom() {
  HOME=$dir timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$dir/profile" --dump-dom "file://$(realpath "$1")" 2>"$dir/browser.err" ||
    fail "$browser: $(tail -n 5 "$dir/browser.err")"
}
curves() { grep -oE '<path class="curve"[^>]*>' "$1"; }

test_case "the page names its source, and the same run gives the same page"
cmp "$page" "$dir/again/report.html" || fail "another page"
hash=$(sed -n '1s/.*configuration //p' "$dir/one.txt")
grep -qF "page.ini, seed 1, configuration $hash" "$page" || fail "no origin"
grep -qF "page.ini, seeds 1..3, configuration $hash" "$dir/sweep/report.html" || fail "no origin of the sweep"
grep -qF 'h{1..2}-sw_0/delay = 10us' "$page" || fail "no text of the file"
grep -qF '<h1>5 &lt; 6 &amp; &lt;/script&gt; &quot;quoted&quot;</h1>' "$page" || fail "the title: $(grep '<h1>' "$page")"

test_case "the page loads nothing"
grep -qF "default-src 'none'" "$page" || fail "no policy"
expect "" "$(grep -oE '(src|href)="?[^" >]*|@import|url\((http|//)[^)]*|https?://[^ "'"'"']*' "$page" | grep -v '^http://www.w3.org/2000/svg' | xargs)" "what it refers to"

test_case "the tables are there without scripts"
expect 2 "$(grep -cE '^<tr><td>(near|far)</td><td>1</td><td>flows done</td>.*<td>6 done</td>' "$page")" "the runs"
for variant in near far; do
  mean=$(sed -n "/^# $variant/,/trace/s/.*slowdown \([0-9.]*\) on average.*/\1/p" "$dir/one.txt")
  grep -qE "^<tr><td>$variant</td><td>all</td><td>6</td><td>$mean</td>" "$page" || fail "no slowdown of $variant, $mean"
done
grep -qE '^<tr><td>far</td><td>all</td><td>6</td><td>[0-9.]+ <small>±' "$dir/sweep/report.html" || fail "no interval in the sweep's"

test_case "a partial run is marked"
sed 's/^title.*/limit = 100us/' "$dir/page.ini" >"$dir/cut.ini"
"$ROCEFS" sim "$dir/cut.ini" --out "$dir/cut" >/dev/null 2>&1 && fail "the limit was not met"
grep -qE '^<p>Partial: near, seed 1: .*flows still run after 100us</p>' "$dir/cut/report.html" || fail "no mark: $(grep Partial "$dir/cut/report.html")"

test_case "a browser draws the curves of all variants"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "no chromium here"
dom "$page" >"$dir/dom"
# CDF, two by size, a panel of one sample and one of two: 2 variants each.
expect 12 "$(curves "$dir/dom" | wc -l)" "curves"
expect "6 6" "$(curves "$dir/dom" | grep -c 'data-variant="near"') $(curves "$dir/dom" | grep -c 'data-variant="far"')" "by variant"
expect 0 "$(curves "$dir/dom" | grep -cvE ' d="M[0-9.]+ [0-9.]+([LHV][0-9. ]+)+"')" "curves that are not drawn: $(curves "$dir/dom")"
grep -q NaN "$dir/dom" && fail "NaN: $(grep -o '.\{50\}NaN' "$dir/dom" | head -n 3)"
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
