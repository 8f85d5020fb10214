#!/bin/bash
# The control files: several knobs in one store, and the levels of dmesg.
. "$(dirname "$0")/lib/common.bash"
mounted -o clock=virtual

einval="Invalid argument"
here=kernel/debug/rocefs
link=$here/links/mb_0-sw_0
lines() { wc -l <"$debug/dmesg"; }
refused() {  # TEXT MESSAGE REASON
  expect "$2" "$(store "$1" "$debug/set")" "set of '$1'"
  last_dmesg_says "$here/set: "
  last_dmesg_says "$3"
  expect "0 1us" "$(cat "$mnt/$link"/{loss,delay} | xargs)" "after a refused set of '$1'"
}

test_case "set stores several knobs at once"
# set: all or nothing, through links, in one line or several.
expect ok "$(store "$link/loss=0.5 $link/delay=3us class/infiniband/mb_0/node_desc='the left one'" "$debug/set")" "set"
expect "0.5 3us the left one" "$(cat "$mnt/$link"/{loss,delay} "$ib/mb_0/node_desc" | xargs)" "after set"
# bash's echo writes line by line; each write(2) is one store.
printf '%s\n' "$link/loss=0" "$link/delay=1us" >"$dir/lines"
cat "$dir/lines" >"$debug/set" || fail "set in two lines"
expect "0 1us" "$(cat "$mnt/$link"/{loss,delay} | xargs)" "after set in two lines"

test_case "set is all or nothing"
refused "$link/loss=0.1 $link/delay=soon" "$einval" "$link/delay: 'soon'"
refused "$link/loss=0.1 $link/rate=1" "$einval" "$link/rate: 1 is outside"
refused "$link/loss=0.1 $link/loss=0.2" "$einval" "$link/loss: given twice"
refused "$link/loss=0.1 $link/delay=99999999999999999999" "Numerical result out of range" "$link/delay"
refused "$link/loss=0.1 $link/packets=0" "$einval" "$link/packets: no knob"
refused "$link/loss=0.1 $here/clock/stop=1" "$einval" "clock/stop: no knob"
refused "$link/loss=0.1 nowhere=1" "$einval" "nowhere: no knob"
refused "$link/loss=0.1 $here/clock/dilation=2" "Operation not supported" "$here/clock/dilation: "
refused "" "$einval" "an empty line"
refused "$link/loss" "$einval" "PATH=VALUE is wanted"

test_case "set refuses an empty line and more than a page"
printf '%s\n' "$link/loss=0.1" "" "$link/delay=2us" >"$dir/lines"
cat "$dir/lines" >"$debug/set" 2>/dev/null && fail "an empty line in the middle"
last_dmesg_says "an empty line"
expect "0 1us" "$(cat "$mnt/$link"/{loss,delay} | xargs)" "after an empty line in the middle"
printf '%s %5000s\n' "$link/loss=0.1" "$link/delay=2us" >"$dir/lines"
cat "$dir/lines" >"$debug/set" 2>/dev/null && fail "more than a page"
last_dmesg_says "longer than 4095 bytes"
expect "0 1us" "$(cat "$mnt/$link"/{loss,delay} | xargs)" "after more than a page"

test_case "log_level decides which stores dmesg reports"
# log_level: debug reports accepted stores too, warning only refusals, err neither.
expect info "$(cat "$debug/log_level")" "the level at first"
before=$(lines)
expect ok "$(store 0.25 "$mnt/$link/loss")" "loss"
expect "$before" "$(lines)" "an accepted store at info"
expect ok "$(store debug "$debug/log_level")" "debug"
bash -c 'echo 0.125 > "$1"; echo $$ > "$2"' bash "$mnt/$link/loss" "$dir/pid"
last_dmesg_says "$link/loss: '0.125' from pid $(cat "$dir/pid")"
expect ok "$(store 1us "$debug/clock/advance")" "advance"
last_dmesg_says "$here/clock/advance: '1us' from pid"
expect ok "$(store "$link/loss=0" "$debug/set")" "set"
last_dmesg_says "$here/set: '$link/loss=0' from pid"
expect "$einval" "$(store x "$mnt/$link/loss")" "a refused store"
last_dmesg_says "'x'"
expect ok "$(store warning "$debug/log_level")" "warning"
before=$(lines)
expect ok "$(store 0.25 "$mnt/$link/loss")" "loss"
expect "$before" "$(lines)" "an accepted store at warning"
expect "$einval" "$(store y "$mnt/$link/loss")" "a refused store"
last_dmesg_says "'y'"
expect ok "$(store err "$debug/log_level")" "err"
before=$(lines)
expect "$einval" "$(store z "$mnt/$link/loss")" "a refused store"
expect "$before" "$(lines)" "a refused store at err"
expect "$einval" "$(store loud "$debug/log_level")" "an unknown level"
expect err "$(cat "$debug/log_level")" "after an unknown level"
