#!/bin/bash
# rocefs top shows NICs, links, queues and flows in a terminal, as tables and as CSV, and leaves both as they were.
. "$(dirname "$0")/lib/common.bash"
needs tmux
export LC_ALL=C.UTF-8 TMUX_TMPDIR=$dir
unset TMUX NO_COLOR ROCEFS_MOUNT
pane() { tmux -L top "$@"; }
at_end pane kill-server

# A terminal of that size with a shell that has not been started: `begun` starts a command in it.
terminal() {  # WIDTH HEIGHT
  pane kill-server 2>/dev/null || true
  await no_server
  pane -f /dev/null new-session -d -x "$1" -y "$2" -s one "PS1='ready> ' exec bash --norc --noprofile"
  await shows 'ready>'
}
no_server() { ! pane list-sessions 2>/dev/null; }
begun() {  # COMMAND: its status is shown when it ends
  pane send-keys -t one -l "$1; echo \"status \$?\""
  pane send-keys -t one Enter
}
keys() { pane send-keys -t one "$@"; }
shown() { pane capture-pane -p -t one; }
shows() { shown | grep -qF -- "$1"; }
hides() { ! shows "$1"; }
matches() { shown | grep -qE -- "$1"; }
row() { shown | sed -n "$1p"; }  # NUMBER, from 1
row_has() { [[ $(row "$1") == *"$2"* ]]; }
top() { "$ROCEFS" top -m "$mnt" "$@"; }
top_in_pane() { begun "'$ROCEFS' top -m '$mnt' -d 0.1 $*"; }
# Octets as top shows them, from 10 KB on.
octets_text() { awk -v n="$1" 'BEGIN {split("B KB MB GB", unit, " "); for (i = 1; n >= 1023.5; ++i) n /= 1024
  printf "%.*f %s", n < 9.995 ? 2 : n < 99.95 ? 1 : 0, n, unit[i]}'; }

{
  for i in 0 1 2 3; do printf '[device h%d]\n' $i; done
  printf '[switch sw]\n'
  for i in 0 1 2 3; do printf '[link h%d sw]\nrate = 10G\n' $i; done
  printf '[knobs]\nkernel/debug/rocefs/fabric/sw/ecn/enable = 1\n'
} >"$dir/incast.ini"
incast() { mounted -o "clock=virtual,config=$dir/incast.ini"; }
flows_start() {
  local i
  for i in 1 2 3; do echo "f$i write h$i h0 size=64K count=1000000" >"$debug/traffic/start"; done
}
queued() { cat "$debug/fabric/sw/ports/1/queue/0/bytes"; }
incast
flows_start

test_case "the page has the mount, the clock, totals and devices, and says that virtual time stands"
terminal 80 24
top_in_pane
await shows "virtual time stands: counts"
row_has 1 "rocefs top  $(cut -c 1-20 <<<"$mnt")" || fail "header: $(row 1)"
row_has 1 "virtual clock 0.000000000 s" || fail "clock: $(row 1)"
for text in Out In Queued Dropped Lost Marked CNPs Retransm. PAUSE '1 Devices' '4 Flows' 'F10Quit'; do
  shows "$text" || fail "no $text: $(shown)"
done
row_has 4 "Flows 3 of 3 run" || fail "flows: $(row 4)"
matches '^ h0 +ACTIVE +0 B ' || fail "devices: $(shown)"
expect 24 "$(shown | wc -l)" "lines"

test_case "a queue that grows is seen, on top of the others"
terminal 80 24
top_in_pane --screen queues
await shows "QUEUEDv"
echo 20us >"$debug/clock/advance"
first=$(queued)
await row_has 7 " $(octets_text "$first") "
echo 20us >"$debug/clock/advance"
second=$(queued)
[ "$second" -gt "$first" ] || fail "the queue does not grow: $first, $second"
await row_has 7 " $(octets_text "$second") "
row_has 7 "sw           1    0 h0" || fail "the queue on top: $(row 7)"
await row_has 4 "Queued $(octets_text "$(cat "$debug/fabric/sw/ports/"*/queue/*/bytes | awk '{sum += $1} END {print sum}')")"

test_case "rates are per virtual second, whatever the wall clock says"
echo 50us >"$debug/clock/advance"
before=$(cat "$debug/clock/now_ns")
(while :; do echo 20us >"$debug/clock/advance"; done) &
advancing=$!
top --batch -n 3 -d 0.2 --screen links --sort load >"$dir/said"
top --batch --csv -n 1 -d 0.2 --screen links >"$dir/csv"
kill $advancing && wait $advancing || true
expect 3 "$(grep -c "^$mnt: virtual clock .* s, rates of links$" "$dir/said")" "tables"
# The way to h0 is full, however slow this machine is.
grep -qE '^sw-h0 +up +(9[0-9]\.[0-9]|100)% +10.0 Gb/s +9\.[0-9]+ Gb/s ' "$dir/said" || fail "$(cat "$dir/said")"
awk -F, -v before="$before" 'NR == 1 {for (i = 1; i <= NF; ++i) at[$i] = i}
  $at["link"] == "sw-h0" {seen = $1 > before && $2 > 0 && $at["octets_per_s"] > 1.1e9 && $at["octets_per_s"] < 1.26e9 && $at["rate_bps"] == 10000000000}
  END {exit !seen}' "$dir/csv" || fail "$(cat "$dir/csv")"

test_case "keys sort, filter, search, count and help"
terminal 80 24
top_in_pane
await matches '^ DEVICE .*OUTv'
keys N
await matches '^ DEVICE\^'
matches '^ h0 ' && row_has 7 " h0 " || fail "by name: $(row 7)"
keys I
await row_has 7 " h3 "
keys '<'
await hides 'DEVICEv'
keys F6
await shows 'Sort by'
keys Home Enter
await matches '^ DEVICE\^'
keys /
await shows 'Filter:'
keys -l 'h1|H2'
await shows '2 of 4 rows'
hides ' h3 ' || fail "not filtered: $(shown)"
keys Enter Escape
await hides 'of 4 rows'
keys F3
await shows 'Search:'
keys -l h2
keys Enter
await hides 'Search:'
keys 2
await shows 'LOADv'
keys Tab
await shows 'QUEUEDv'
keys End
await matches '^ sw +4 +7 h3'
keys BTab
await shows 'LOADv'
keys h
await shows 'Any key leads back'
keys x
await shows 'LOADv'
keys p
await shows 'PAUSED'
keys p
await hides 'PAUSED'
keys F8
await shows 'A look every 0.2 s'

test_case "the end restores the terminal, by key and by signal"
terminal 80 24
keys -l 'stty -a >"'"$dir"'/before"; echo "seen before"'
keys Enter
await shows 'seen before'
for way in q F10 INT TERM HUP; do
  top_in_pane
  await shows 'F10Quit'
  hides 'seen before' || fail "no screen of its own"
  case $way in
    q | F10) keys "$way" ;;
    INT) keys C-c ;;
    *) pkill -"$way" -f "^rocefs-top -m $mnt" ;;
  esac
  await shows 'status 0'
  shows 'seen before' || fail "$way: the screen is not restored: $(shown)"
  hides 'F10Quit' || fail "$way: the page stays: $(shown)"
  keys -l 'clear; stty -a >"'"$dir"'/after"; echo "seen before"'
  keys Enter
  await hides 'status 0'
  await cmp -s "$dir/before" "$dir/after"
done

test_case "the page follows the terminal's size, down to one that holds nothing"
terminal 80 24
top_in_pane --screen flows
await shows 'MOVEDv'
hides 'ELAPSED' || fail "more than 80 columns: $(shown)"
pane resize-window -t one -x 200 -y 60
await row_has 60 'F10Quit'
await shows 'ELAPSED'
for size in '40 10' '20 5' '5 2' '1 1' '120 3'; do
  pane resize-window -t one -x "${size% *}" -y "${size#* }"
done
pane resize-window -t one -x 80 -y 24
await row_has 24 'F10Quit'
await row_has 5 '4 Flows'
keys q
await shows 'status 0'

test_case "tables and CSV need no terminal"
top --batch -n 1 -d 0.05 --screen devices --sort name </dev/null >"$dir/said"
expect "$mnt: virtual clock $(awk '{printf "%.9f", $1 / 1e9}' "$debug/clock/now_ns") s, counts of devices" "$(head -n 1 "$dir/said")" "heading"
expect "DEVICE h0 h1 h2 h3" "$(sed 1d "$dir/said" | awk '{print $1}' | xargs)" "rows"
expect "h3 h2 h1 h0" "$(top --batch -n 1 -d 0.05 --sort -name | sed 1,2d | awk '{print $1}' | xargs)" "the other way round"
sent=$(cat "$ib/h1/ports/1/counters/port_xmit_packets")
expect "$(cat "$debug/clock/now_ns"),0,h1,ACTIVE,,$sent" \
  "$(top --batch --csv -n 1 -d 0.05 | grep ',h1,' | cut -d , -f 1-5,10)" "a line of CSV"
expect "1 5" "$(top --batch --csv -n 2 -d 0.05 --screen flows --sort name >"$dir/csv"; echo "$(grep -c time_ns "$dir/csv") $(cut -d , -f 3 "$dir/csv" | grep -c '^f[12]$\|name')")" "one heading"
expect 32 "$(top --batch --csv -n 1 -d 0.05 --screen queues | grep -c ',sw,')" "queues"

test_case "a command line that is wrong is refused, and so is a place without a terminal"
expect "2 rocefs top: '--nope' is no option" "$(outcome_of top --nope | head -n 1)" "an option"
expect "2 rocefs top: -d: '0' is outside 50ms to 3600s" "$(outcome_of top -d 0 | head -n 1)" "a delay"
expect "2 rocefs top: --screen 'disks': devices, links, queues or flows is wanted" "$(outcome_of top --screen disks | head -n 1)" "a screen"
[[ $(outcome_of top --screen links --sort cnps) == "2 rocefs top: --sort 'cnps': links has name, state, load, "* ]] || fail "a column"
expect "2 rocefs top: --csv is for --batch" "$(outcome_of top --csv | head -n 1)" "CSV in a terminal"
expect "1 rocefs top: a terminal is needed, or --batch" "$(outcome_of top </dev/null)" "no terminal"
[[ $(outcome_of "$ROCEFS" top -m "$dir" --batch -n 1) == "1 rocefs top: "* ]] || fail "no mount"
[[ $("$ROCEFS" top --help) == "usage: rocefs top "* ]] || fail "--help"

test_case "terminals without colours, or without a cursor"
colours() { pane capture-pane -e -p -t one | grep -cE $'\e\\[([0-9;]*;)?[34][0-7]([;m])' || true; }
terminal 80 24
top_in_pane
await shows F10Quit
[ "$(colours)" -gt 0 ] || fail "no colours"
keys q
await shows 'status 0'
for variable in NO_COLOR=1 TERM=vt100; do
  terminal 80 24
  begun "$variable '$ROCEFS' top -m '$mnt' -d 0.1"
  await shows F10Quit
  expect 0 "$(colours)" "lines with colours under $variable"
  keys q
  await shows 'status 0'
done
begun "TERM=dumb '$ROCEFS' top -m '$mnt'"
await shows 'rocefs top: TERM=dumb cannot move its cursor: --batch prints tables'
await shows 'status 1'

test_case "a mount point's control characters do not reach the terminal"
odd=$dir/$'m\e[31m\a'
mkdir -p "$odd"
"$ROCEFS" "$odd" >/dev/null
at_end fusermount3 -u -z "$odd"
terminal 200 24
begun "'$ROCEFS' top -d 0.1 -m \"\$(printf '$dir/m\\033[31m\\007')\""
await shows "$dir/m?[31m?"
await shows "real clock"
keys q
await shows 'status 0'
expect "$dir/m?[31m?: real clock" "$("$ROCEFS" top --batch -n 1 -d 0.05 -m "$odd" | head -n 1 | grep -oE '^.* clock')" "a table"

test_case "a load shows what it has done"
mounted -o clock=virtual
echo "w pattern=poisson load=0.1 size=10K flows=1000" >"$debug/loads/start"
echo 1ms >"$debug/clock/advance"
result() { awk -v key="$1" '$1 == key {print $2}' "$debug/loads/w/result"; }
[ "$(result done)" -gt 0 ] || fail "no flow is done: $(cat "$debug/loads/w/result")"
expect "load,running,$(result bytes),$(result done),0,$(result started)" \
  "$(top --batch --csv -n 1 -d 0.05 --screen flows | grep ',w,' | cut -d , -f 4,5,7,14-16)" "a load's line of CSV"

test_case "a flow on the real clock has a rate"
mounted
echo "f write mb_0 mb_1 size=64K count=1000000" >"$debug/traffic/start"
terminal 80 24
top_in_pane --screen flows
await matches '^ f +flow running +[0-9.]+ [KMG]b/s '
matches 'real clock [0-9]+\.[0-9] s' || fail "the clock: $(row 1)"
echo 1 >"$debug/traffic/f/stop"
await matches '^ f +flow stopped '

test_case "a mount that goes away ends it, with a reason"
terminal 80 24
top_in_pane
await shows F10Quit
"$ROCEFS" top -m "$mnt" --batch -d 0.1 >"$dir/said" 2>"$dir/why" &
batch=$!
await grep -q "rates of devices" "$dir/said"
fusermount3 -u -z "$mnt"
await shows 'status 1'
shows "the mount has ended" || fail "no reason: $(shown)"
hides F10Quit || fail "the terminal is not restored: $(shown)"
status=0
wait $batch || status=$?
expect "1 rocefs top: $mnt: the mount has ended" "$status $(cat "$dir/why")" "batch"
await gone
