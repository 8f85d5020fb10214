#!/bin/bash
# A long store holds up only its own writer; a writer that is killed while it waits is gone at once.
. "$(dirname "$0")/lib/common.bash"
mounted -o clock=virtual

# Virtual time that takes long: a flow of a billion messages.
echo "endless write mb_0 mb_1 count=1000000000 size=4K" >"$debug/traffic/start"
busy() { sh -c 'echo 1000000s > "$1"' sh "$debug/clock/advance"; }
moving() { [ "$(cat "$debug/clock/now_ns")" -gt "${1:-0}" ]; }

test_case "others read and write during a long advance"
busy 2>"$dir/busy.err" &
shell=$!
at_end eval 'kill $shell 2>/dev/null'
await moving
before=$(cat "$debug/clock/now_ns")
delay=$debug/links/mb_0-sw_0/delay  # not loss: a flow under it ends some time, and the advance with it
expect 1us "$(cat "$delay")" "cat beside a waiting advance"
expect ok "$(store 2us "$delay")" "echo beside a waiting advance"
expect 2us "$(cat "$delay")" "cat after echo"
await moving "$before"
kill -0 $shell || fail "the advance ended by itself"

# Stopped by the other file.
expect ok "$(store 1 "$debug/clock/stop")" "stop"
wait $shell && fail "a stopped advance is no success"
at=$(cat "$debug/clock/now_ns")
expect "$at" "$(cat "$debug/clock/now_ns")" "time after the stop"

test_case "a waiting writer can be killed at once, which also ends its advance"
# Killed: the waiting process itself, which is the shell's child.
for _ in 1 2 3 4 5; do
  at=$(cat "$debug/clock/now_ns")
  bash -c 'exec 3> "$1"; printf 1000000s >&3' bash "$debug/clock/advance" &
  writer=$!
  await moving "$at"
  kill -9 $writer
  wait $writer 2>/dev/null && fail "killed, and still a success"
  # The advance of the killed writer is over: the next one is not refused.
  expect ok "$(store 1us "$debug/clock/advance")" "advance after a kill"
done

test_case "a flow can be removed while its directory is listed"
for round in $(seq 20); do
  echo "f$round write mb_0 mb_1" >"$debug/traffic/start"
done
echo 1s >"$debug/clock/advance"
for round in $(seq 20); do
  ls -lR "$debug/traffic" >/dev/null 2>&1 &
  (cd "$debug/traffic/f$round" && ls >/dev/null)
  echo 1 >"$debug/traffic/f$round/stop"
  wait $!  || true
  [ ! -e "$debug/traffic/f$round" ] || fail "f$round is still there"
done

test_case "a stopped flow stays until it is stopped again"
echo 1 >"$debug/traffic/endless/stop"
expect "stopped" "$(cat "$debug/traffic/endless/state")" "state of a stopped flow"
echo 1 >"$debug/traffic/endless/stop"
expect "start" "$(ls "$debug/traffic")" "what is left"
expect "mb_0 mb_1" "$(ls "$ib" | xargs)" "the mount is alive"
