#!/bin/bash
# rocefs view: a page that shows a mount and stores knobs; who may do that. A browser drives the page where there is
# one (`make browser`); screenshots stay in BUILD/test/view.
. "$(dirname "$0")/lib/common.bash"
. "$(dirname "$0")/lib/view.bash"
shots=$(dirname "$ROCEFS")/../test/view
mkdir -p "$shots"
# feed SECONDS…: the messages of a stream, one a line.
feed() { timeout "$1" curl -sN "${site}/api/feed${2:-}" | sed -n 's/^data: //p'; }

needs_browser() {
  command -v chromedriver >/dev/null && command -v chromium >/dev/null || skip "no chromium with its driver here: make browser"
}
browser() { HOME=$dir python3 "$(dirname "$0")/lib/browser.py" "$dir" "$@"; }
# page OPTION…: a new browser at the page of a new mount.
page() {
  mount_one "$1"
  serve "$mnt" "${@:3}"
  at_end browser stop
  browser start "${2:-1400x900}"
  browser open "$url"
  browser wait 'document.body.dataset.looks > 1'
}
no_errors() { expect "" "$(browser errors | grep -v 'api/store')" "errors of the page"; }
# played RECORDING: a new browser at the page of a recording.
played() {
  "$view" --replay "$1" --listen 127.0.0.1:0 >"$dir/served" 2>&1 &
  server=$!
  at_end end_server
  serves() { grep -q "^http://" "$dir/served"; }
  await serves
  at_end browser stop
  browser start 1400x900
  browser open "$(cut -d' ' -f1 "$dir/served")"
}
total() { browser js "return document.querySelector('[data-total=\"$1\"]').textContent"; }

test_case "the command line: help, mistakes, a place that is no mount"
expect 0 "$("$view" --help >"$dir/help"; echo $?)" "help"
grep -q "^usage: rocefs view" "$dir/help" || fail "$(cat "$dir/help")"
expect 2 "$("$view" -m "$mnt" --listen nowhere 2>"$dir/said"; echo $?)" "--listen nowhere"
expect 2 "$("$view" -m "$mnt" --listen 127.0.0.1:65536 2>"$dir/said"; echo $?)" "a port"
expect 2 "$("$view" -m "$mnt" --interval 1ms 2>"$dir/said"; echo $?)" "an interval"
expect 1 "$("$view" -m "$dir" 2>"$dir/said"; echo $?)" "a directory"
grep -q "no rocefs is mounted there" "$dir/said" || fail "$(cat "$dir/said")"

test_case "the page and the mount's shape; a port that is taken"
mount_one "$dir/star.ini"
serve "$mnt"
get -D "$dir/head" "$site/" >"$dir/page"
grep -q '<title>rocefs</title>' "$dir/page" || fail "$(head -c 300 "$dir/page")"
grep -qi "^content-security-policy: default-src 'none'" "$dir/head" || fail "$(cat "$dir/head")"
expect 10 "$(get "$site/api/shape" | grep -o '"kind":"[a-z]*"' | wc -l)" "nodes"
expect 9 "$(get "$site/api/shape" | grep -o '"out":"sw_0-h[0-9]"' | wc -l)" "cables"
expect 1 "$(timeout 20 "$view" -m "$mnt" --listen "127.0.0.1:$port" 2>"$dir/said"; echo $?)" "the same port"
grep -q "Address already in use; --listen 127.0.0.1:0" "$dir/said" || fail "$(cat "$dir/said")"

test_case "a stream has all files first, then what has changed"
mount_one "$dir/star.ini"
serve "$mnt"
: >"$dir/messages"
feed 2 >"$dir/messages" &
"$ROCEFS" wait --timeout 20 "$dir/messages!=" || fail "no message"
echo 0.25 >"$mnt/$loss"
echo 'f write h1 h0' >"$debug/traffic/start"
wait $! || true
head -n 1 "$dir/messages" | grep -q '"paths":\["kernel/debug/rocefs/clock/now_ns"' || fail "$(head -c 300 "$dir/messages")"
sed 1d "$dir/messages" | grep -q '"dmesg"\|"stores":\[.*traffic/start' || fail "no news of the store: $(sed 1d "$dir/messages" | tail -n 3)"
sed 1d "$dir/messages" | grep -q '"g":1,"paths":\[.*traffic/f/state' || fail "no flow: $(sed 1d "$dir/messages" | tail -n 2)"
expect '["0.25"]' "$(feed 1 "?pin=$loss" | head -n 1 | grep -o '"g":2,.*' | grep -o '"values":.*' | sed 's/.*"values"://; s/}.*//')" "a pin"

test_case "a pin that is not there takes no other with it, and says nothing in dmesg again and again"
mount_one "$dir/star.ini"
serve "$mnt"
feed 3 "?pin=$loss&pin=kernel/debug/rocefs/dmesg&pin=kernel/debug/rocefs/traffic/f/state" >"$dir/messages" || true
expect "$loss" "$(head -n 1 "$dir/messages" | grep -o '"g":2,"paths":\["[^"]*"' | sed 's/.*"\(kernel.*\)"/\1/')" "the pin that is there"
[ "$(grep -c '/get:' "$debug/dmesg")" -le 4 ] || fail "$(grep -c '/get:' "$debug/dmesg") lines"

test_case "the reason of a refusal is that of this store"
mount_one "$dir/star.ini"
serve "$mnt"
echo 7 >"$mnt/$loss" 2>/dev/null || true
store nothing/loss 7 -H "X-Rocefs-Token: $token" >"$dir/said"
grep -q '"errno":"ENOENT"' "$dir/said" && ! grep -q dmesg "$dir/said" || fail "$(cat "$dir/said")"

test_case "--read-only: nobody stores"
mount_one "$dir/star.ini"
serve "$mnt" --read-only
expect "$site/" "$url" "the address"
store "$loss" 0.5 -H "X-Rocefs-Token: " | grep -q '"errno":"EROFS"' || fail "a store"
expect 0 "$(cat "$mnt/$loss")" "what was refused"

test_case "many streams, hanging ones too, leave room for requests"
mount_one "$dir/star.ini"
serve "$mnt"
for ((i = 0; i < 30; ++i)); do
  curl -sN -m 30 "$site/api/feed" >"$dir/stream.$i" &
done
"$ROCEFS" wait --timeout 20 "$dir/stream.?!=" "$dir/stream.??!=" || fail "a stream without an answer"
expect 6 "$(grep -l 'too many pages' "$dir"/stream.* | wc -l)" "streams refused"
get "$site/api/shape" | grep -q '"nodes"' || fail "no answer beside the streams"

test_case "SIGTERM ends the server"
mount_one "$dir/star.ini"
serve "$mnt"
kill $server
status=0
wait $server || status=$?
expect 0 $status "status"

test_case "the page keeps no mount: it can be unmounted, the streams say so, the server and the daemon end"
mount_one "$dir/star.ini"
serve "$mnt"
: >"$dir/messages"
{ feed 60 || true; } >"$dir/messages" &
"$ROCEFS" wait --timeout 20 "$dir/messages!=" || fail "no message"
fusermount3 -u "$mnt" || fail "busy"
"$ROCEFS" wait --timeout 20 "$dir/messages=*\"gone\":*" || fail "no word of it: $(tail -n 1 "$dir/messages" | head -c 300)"
status=0
wait $server || status=$?
expect 1 $status "status"
grep -q "the mount has ended" "$dir/served" || fail "$(cat "$dir/served")"
await gone

test_case "a worker that is killed: the streams go on"
mount_one "$dir/star.ini"
serve "$mnt"
: >"$dir/messages"
feed 30 >"$dir/messages" &
"$ROCEFS" wait --timeout 20 "$dir/messages!=" || fail "no message"
kill_worker
echo 0.125 >"$mnt/$loss" || fail "no store after the takeover"
lines=$(wc -l <"$dir/messages")
goes_on() { [ "$(wc -l <"$dir/messages")" -gt $((lines + 5)) ]; }
await goes_on
tail -n 1 "$dir/messages" | grep -q '"gone"' && fail "$(tail -n 1 "$dir/messages")"
expect '["0.125"]' "$(feed 1 "?pin=$loss" | head -n 1 | grep -o '"g":2,.*' | grep -o '"values":.*' | sed 's/.*"values"://; s/}.*//')" "a pin"

test_case "a recording has what the page is told; mistakes about it"
mount_one "$dir/star.ini"
serve "$mnt" --record "$dir/recording"
echo 0.25 >"$mnt/$loss"
has_lines() { [ "$(wc -l <"$dir/recording")" -ge "$1" ]; }
await has_lines 4
unmounted
status=0
wait $server || status=$?
expect 1 $status "status"
python3 - "$dir/recording" <<'PY'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
assert len(lines[0]["shape"]["nodes"]) == 10 and len(lines[0]["shape"]["cables"]) == 9
assert lines[1]["groups"][0]["paths"][0] == "kernel/debug/rocefs/clock/now_ns"
assert all(group["g"] in (0, 1) for line in lines[1:] for group in line["groups"])
PY
expect 2 "$("$view" --replay "$dir/recording" --record "$dir/other" 2>"$dir/said"; echo $?)" "both"
expect 1 "$("$view" --replay "$dir/none" 2>"$dir/said"; echo $?)" "no file"
for wrong in "$dir/star.ini" /dev/null "$dir"; do
  expect 1 "$("$view" --replay "$wrong" --listen 127.0.0.1:0 2>"$dir/said"; echo $?)" "$wrong"
done
mount_one "$dir/star.ini"
expect 1 "$("$view" -m "$mnt" --record "$dir/none/file" --listen 127.0.0.1:0 2>"$dir/said"; echo $?)" "no directory"

test_case "a full disk ends the recording, not the page"
needs_root
mkdir -p "$dir/small"
mount -t tmpfs -o size=256k small "$dir/small"
at_end umount -l "$dir/small"
mount_one "$dir/star.ini"
serve "$mnt" --record "$dir/small/recording" --interval 50ms
head -c 1M /dev/zero >"$dir/small/rest" 2>/dev/null || true
said() { grep -q "the recording ends: .*No space left on device" "$dir/served"; }
await said
get "$site/api/shape" | grep -q '"nodes"' || fail "no page"

test_case "browser: a queue grows under incast, and a knob that is stored shows its effect; by keyboard alone"
needs_browser
page "$dir/star.ini"
for i in 1 2 3 4 5 6 7 8; do echo "f$i write h$i h0 size=1M count=4" >"$debug/traffic/start"; done
expect "0 B" "$(total 'deepest queue')" "before"
# The step of time is a field of the header.
browser js "document.getElementById('step').focus(); document.getElementById('step').select()" >/dev/null
browser keys '100us{Enter}'
browser wait "document.querySelector('[data-total=\"deepest queue\"]').textContent.endsWith('KB')"
browser wait "document.getElementById('clock').textContent == 'virtual clock, 100 µs'"
expect "0/s" "$(total marks)" "marks without ECN"
browser shot "$shots/incast.png"
# The switch, by its name; its ECN; a bad value, then a good one.
browser js "document.activeElement.blur()" >/dev/null
browser keys '/sw_0{Enter}'
browser wait "document.querySelector('#panel h2').textContent == 'sw_0'"
browser wait "document.querySelector('#panel details[data-path\$=\"sw_0/ecn\"] > summary')"
browser js "document.querySelector('#panel details[data-path\$=\"sw_0/ecn\"] > summary').focus()" >/dev/null
browser keys '{Enter}'
field="document.getElementById('kernel/debug/rocefs/fabric/sw_0/ecn/enable')"
browser wait "$field && $field.value == '0'"
browser keys '{Tab}'
browser wait "document.activeElement == $field"
browser keys '7{Enter}'
browser wait "document.querySelector('[data-path\$=\"ecn/enable\"] .said').textContent.includes('EINVAL')"
expect 0 "$(cat "$debug/fabric/sw_0/ecn/enable")" "after a bad value"
browser shot "$shots/refused.png"
browser js "$field.select()" >/dev/null
browser keys '1{Enter}'
browser wait "document.querySelector('[data-path\$=\"ecn/enable\"] .said').textContent == ''"
expect 1 "$(cat "$debug/fabric/sw_0/ecn/enable")" "after a good value"
browser js "document.getElementById('step').focus()" >/dev/null
browser keys '{Enter}'
browser wait "document.querySelector('[data-total=\"marks\"]').textContent != '0/s'"
browser js "document.activeElement.blur()" >/dev/null
browser keys l
browser wait "document.querySelector('#stores pre').textContent.includes('ecn/enable=1')"
browser wait "document.querySelectorAll('#charts .store').length >= 2"
browser shot "$shots/marks.png"
no_errors

test_case "browser: a file over time, zoom, pause, export, dark and light"
needs_browser
page "$dir/star.ini"
browser keys '/h0{Enter}'
browser wait "document.querySelector('#panel details[data-path=\"kernel/debug/rocefs/links/h0-sw_0\"] > summary')"
browser js "document.querySelector('#panel details[data-path=\"kernel/debug/rocefs/links/h0-sw_0\"]').open = true" >/dev/null
browser wait "document.querySelector('[data-path\$=\"h0-sw_0/packets\"] .pin')"
browser js "document.querySelector('[data-path\$=\"h0-sw_0/packets\"] .pin').focus()" >/dev/null
browser keys '{Enter}'
browser wait "document.querySelector('[data-series\$=\"h0-sw_0/packets\"] output').textContent == '0'"
echo 'f write h0 h1 size=64K count=100' >"$debug/traffic/start"
for ((i = 0; i < 5; ++i)); do
  before=$(browser js 'return document.body.dataset.looks')
  echo 100us >"$debug/clock/advance"
  browser wait "document.body.dataset.looks > $before + 1"
done
expect "$(cat "$debug/links/h0-sw_0/packets")" "$(browser js "return document.querySelector('[data-series\$=\"h0-sw_0/packets\"] output').textContent")" "the present value"
browser js 'document.activeElement.blur()' >/dev/null
browser keys '0'
browser wait "document.querySelector('.range').textContent.startsWith('0 ns to 500 µs')"
browser keys '+'
browser wait "document.querySelector('.range').textContent.startsWith('250 µs to 500 µs')"
browser keys 'p'
echo 100us >"$debug/clock/advance"
expect "virtual clock, 500 µs" "$(browser js 'return document.getElementById("clock").textContent')" "while it is stopped"
browser keys 'p'
browser wait "document.getElementById('clock').textContent == 'virtual clock, 600 µs'"
browser js 'window.saved = []; URL.createObjectURL = blob => (blob.text().then(text => saved.push(text)), "blob:none"); HTMLAnchorElement.prototype.click = () => {}' >/dev/null
browser keys 'sc'
browser wait 'saved.length == 2'
browser js 'return saved.find(text => text.startsWith("<?xml"))' >"$dir/saved.svg"
browser js 'return saved.find(text => text.startsWith("now_ns"))' >"$dir/saved.csv"
python3 -c 'import sys, xml.dom.minidom as dom; assert len(dom.parse(sys.argv[1]).getElementsByTagName("rect")) >= 10' "$dir/saved.svg"
head -n 1 "$dir/saved.csv" | grep -q '^now_ns,sent by devices,.*h0-sw_0/packets$' || fail "$(head -n 1 "$dir/saved.csv")"
grep -q '^500000,' "$dir/saved.csv" || fail "$(cat "$dir/saved.csv")"
theme=$(browser js 'return document.documentElement.dataset.theme')
browser keys 't'
browser wait "document.documentElement.dataset.theme != '$theme'"
browser shot "$shots/dark.png"
no_errors

test_case "browser: without the token nothing can be stored"
needs_browser
page "$dir/star.ini"
browser open "http://localhost:$port/"
browser wait 'document.body.dataset.looks > 1'
browser js "return document.getElementById('mount').textContent" | grep -q 'read-only' || fail "it does not say so"
browser keys '/h0{Enter}'
browser wait "document.querySelector('#panel details')"
browser js "document.querySelectorAll('#panel details').forEach(one => one.open = true)" >/dev/null
browser wait "document.querySelectorAll('#panel .file input').length > 3"
expect 0 "$(browser js "return document.querySelectorAll('#panel .file input:not([disabled])').length")" "fields to store"
expect true "$(browser js 'return document.getElementById("advance").hidden')" "buttons of the clock"

test_case "browser: 200 hosts"
needs_browser
printf '[topology]\nkind = leaf-spine\nhosts = 200\nleaves = 10\nspines = 4\nrate = 100G\ncore_rate = 400G\n' >"$dir/many.ini"
page "$dir/many.ini" 1600x1000
expect 214 "$(browser js "return document.querySelectorAll('#map .node').length")" "nodes"
expect 0 "$(browser js "const boxes = [...document.querySelectorAll('#map .node > .box')].map(box => box.getBoundingClientRect());
  return boxes.filter((a, i) => boxes.some((b, j) => j > i && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)).length")" "nodes that cover others"
for ((i = 1; i < 9; ++i)); do echo "f$i write h$((20 * i)) h3 size=1M count=2000" >"$debug/traffic/start"; done
browser wait "document.querySelector('[data-name=h3] .box').classList.contains('load-4')"
browser wait "parseFloat(document.querySelector('[data-total=\"deepest queue\"]').textContent) > 0"
before=$(browser js 'return document.body.dataset.looks')
browser wait "document.body.dataset.looks > $before + 10"
browser shot "$shots/200-hosts.png"
no_errors

test_case "browser: names with - and ., two ports, parallel cables, values with units"
needs_browser
cat >"$dir/names.ini" <<'INI'
[clock]
mode = virtual
[device h-0]
ports = 2
[device h.1]
[device h2]
[switch sw-a]
[link h-0 sw-a]
rate = 10G
[link h-0/2 sw-a]
rate = 10G
[link h.1 sw-a]
rate = 10G
[link h2 sw-a]
rate = 10G
INI
page "$dir/names.ini"
echo 'a write h-0 h2 size=1M count=2' >"$debug/traffic/start"
echo 'b write h.1 h2 size=1M count=2' >"$debug/traffic/start"
echo 100us >"$debug/clock/advance"
browser wait "parseFloat(document.querySelector('[data-total=\"sent\"]').textContent) > 19 && parseFloat(document.querySelector('[data-total=\"sent\"]').textContent) < 21"
browser wait "document.querySelector('[data-name=\"h-0\"] .fact').textContent.includes('9.9')"
expect 8 "$(browser js "return new Set([...document.querySelectorAll('#map .cable')].map(line => line.getAttribute('x1') + ' ' + line.getAttribute('y1') + ' ' + line.getAttribute('x2'))).size")" "half lines at places of their own"
# A pin opens another stream, which begins anew; rates stay, and a rate is a number.
browser keys '/h.1{Enter}'
browser wait "document.querySelector('#panel details[data-path=\"kernel/debug/rocefs/links/h.1-sw-a\"]')"
browser wait "document.querySelector('#panel .facts').textContent.includes('9.94 Gb/s')"
browser js "document.querySelector('#panel details[data-path=\"kernel/debug/rocefs/links/h.1-sw-a\"]').open = true" >/dev/null
for file in rate delay; do
  browser wait "document.querySelector('[data-path\$=\"h.1-sw-a/$file\"] .pin')"
  browser js "document.querySelector('[data-path\$=\"h.1-sw-a/$file\"] .pin').click()" >/dev/null
done
browser wait "document.querySelector('[data-series\$=\"h.1-sw-a/rate\"] output').textContent == '10.0 Gb/s'"
browser wait "document.querySelector('[data-series\$=\"h.1-sw-a/delay\"] output').textContent == '1.00 µs'"
browser js "return document.querySelector('[data-total=\"sent\"]').textContent" | grep -qE '^(19|20)' || fail "the rate is gone"
no_errors

test_case "browser: a heading of the flows sorts, however long it is pressed"
needs_browser
page "$dir/star.ini"
for i in 1 2 3; do echo "f$i write h$i h0 size=1K count=$i" >"$debug/traffic/start"; done
browser wait "document.querySelectorAll('#flows tbody tr').length == 3"
browser js "window.heading = document.querySelector('#flows [data-key=name]')" >/dev/null
before=$(browser js 'return document.body.dataset.looks')
browser wait "document.body.dataset.looks > $before + 3"
expect true "$(browser js "return heading.isConnected")" "the button"
browser js "heading.click()" >/dev/null
expect "f3 f2 f1" "$(browser js "return [...document.querySelectorAll('#flows tbody tr')].map(row => row.firstChild.textContent).join(' ')")" "order"

test_case "browser: a simulation is played"
needs_browser
cat >"$dir/sim.ini" <<'INI'
[topology]
kind = leaf-spine
hosts = 64
leaves = 8
spines = 4
rate = 100G
[load web]
pattern = incast
senders = 16
to = h0
size = 64K
interval = 100us
until = 300us
[sample]
interval = 20us
INI
"$ROCEFS" sim "$dir/sim.ini" --out "$dir/sim" --view >/dev/null 2>"$dir/said" || fail "$(cat "$dir/said")"
played "$dir/sim/view.jsonl"
browser wait 'document.body.dataset.looks > 10'
expect 76 "$(browser js "return document.querySelectorAll('#map .node').length")" "nodes"
browser js "document.getElementById('moment').focus()" >/dev/null
browser keys '{Home}{Right}{Right}'
browser wait "document.getElementById('clock').textContent == 'virtual clock, 40.0 µs'"
total 'deepest queue' | grep -q '[KM]B$' || fail "the queue: $(total 'deepest queue')"
browser shot "$shots/simulation.png"
no_errors

test_case "browser: nothing is asked of another machine"
needs_browser
page "$dir/star.ini"
expect "$site" "$(browser js "return [...new Set(performance.getEntriesByType('resource').map(one => new URL(one.name).origin))].join(' ')")" "who was asked"
expect blocked "$(browser js "return fetch('http://127.0.0.1:1/').then(() => 'sent', () => 'blocked')")" "a request to another origin"

test_case "browser: a recording is played, forwards and back"
needs_browser
mount_one "$dir/star.ini"
serve "$mnt" --record "$dir/recording" --interval 50ms
lines() { wc -l <"$dir/recording"; }
has_more() { [ "$(lines)" -gt $((before + 2)) ]; }
for i in 1 2 3 4; do echo "f$i write h$i h0 size=64K count=10" >"$debug/traffic/start"; done
for step in 100us idle; do
  before=$(lines)
  await has_more
  echo $step >"$debug/clock/advance"
done
before=$(lines)
await has_more
end=$(cat "$debug/clock/now_ns")
unmounted
wait $server || true
played "$dir/recording"
browser wait 'document.body.dataset.looks > 3'
browser js "return document.getElementById('clock').textContent" | grep -q "^virtual clock, [1-9]" || fail "the end of $end ns"
expect "0 B" "$(total 'deepest queue')" "at the end"
browser js "document.getElementById('moment').focus()" >/dev/null
browser keys '{Home}'
browser wait "document.getElementById('clock').textContent == 'virtual clock, 0 ns'"
for ((i = 0; i < 200; ++i)); do
  [ "$(browser js "return document.getElementById('clock').textContent")" != "virtual clock, 100 µs" ] || break
  browser keys '{Right}'
done
browser wait "document.getElementById('clock').textContent == 'virtual clock, 100 µs'"
total 'deepest queue' | grep -q 'KB$' || fail "the queue: $(total 'deepest queue')"
browser keys '{End}'
browser wait "document.querySelector('[data-total=\"deepest queue\"]').textContent == '0 B'"
browser keys '{Home}'
browser js "document.getElementById('play').focus()" >/dev/null
browser keys '{Enter}'
browser wait "document.getElementById('clock').textContent == 'virtual clock, 100 µs'" 60
browser shot "$shots/replay.png"
no_errors
