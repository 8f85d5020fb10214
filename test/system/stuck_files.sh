#!/bin/bash
# Paths on a file system that does not answer: a user who names one waits, can be interrupted, and gets an
# error after two seconds; other users' files, and the end of the mount, do not wait.
. "$(dirname "$0")/lib/common.bash"
needs_root "a FUSE file system that hangs needs root here"
silent=$dir/silent server=
mkdir "$silent"
end_server() { [ -z "$server" ] || kill -KILL "$server" 2>/dev/null || true; umount -l "$silent" 2>/dev/null || true; }
at_end end_server
falls_silent() {  # the file system
  rm -f "$dir/server"
  python3 "$lib/silent_fuse.py" "$silent" >"$dir/server" 2>&1 &
  server=$!
  await grep -qs mounted "$dir/server"
}
mounted
agent() { pgrep -P "$(worker_pid)" -x rocefs-files; }
helpers() { pgrep -c -P "$(agent)" -x rocefs-file || true; }
have() { [ "$(helpers)" = "$1" ]; }
in_time() { timeout -s KILL 60 "$@"; }  # what hangs is not waited for
write() { in_time sh -c 'echo "$1" >"$2"' sh "$1" "$2"; }
said() { [ -s "$dir/$1" ]; }
hangs() {  # NAME TEXT FILE: a store in the background, whose end NAME tells
  (store "$2" "$3" >"$dir/$1") &
}

falls_silent
head -c 3000000 /dev/urandom >"$dir/in"

test_case "a hanging store can be interrupted, and releases what it held"
sh -c 'echo "$1" >"$2"' sh "$silent/x" "$debug/pcap" 2>/dev/null &
interrupted=$!
disown
await grep -q asked "$dir/server"
kill -KILL "$interrupted" 2>/dev/null || true
freed() { [ "$(in_time bash -c "{ echo $dir/capture.pcap >$debug/pcap; } 2>&1 || true")" = "" ]; }
await freed

test_case "other files are read, written and captured meanwhile"
hangs input "a write mb_0 mb_1 file=$silent/x" "$debug/traffic/start"
hangs output "b write mb_0 mb_1 file=$dir/in out=$silent/x" "$debug/traffic/start"
hangs plugins "$silent/x" "$ib/mb_0/pcc/plugin_dir"
write "c write mb_0 mb_1 file=$dir/in out=$dir/out" "$debug/traffic/start" || fail "another flow's files wait"
await state_is c "done"
cmp "$dir/in" "$dir/out" || fail "what was written"
write off "$debug/pcap" || fail "a capture waits"
[ "$(stat -c %s "$dir/capture.pcap")" -gt 3000000 ] || fail "the capture has $(stat -c %s "$dir/capture.pcap") bytes"

test_case "the user who named a hanging path is told"
for name in input output plugins; do
  await said $name
  expect "Connection timed out" "$(cat "$dir/$name")" "$name"
done
grep -q "file system does not answer" "$debug/dmesg" || fail "no word in dmesg"

test_case "a user with several hanging paths gets no more"
# A user with several paths that do not answer gets no more.
for ((i = 0; i < 6; ++i)); do
  refused=$(store "$silent/y" "$debug/pcap")
  [ "$refused" = "Connection timed out" ] || break
done
expect "Resource temporarily unavailable" "$refused" "one more, after $i"
kill -KILL "$server"
wait "$server" 2>/dev/null || true
umount -l "$silent"
await have 0
expect ok "$(store "e write mb_0 mb_1 file=$dir/in" "$debug/traffic/start")" "a file, when those have ended"

test_case "the end of the mount does not wait for hanging paths"
falls_silent
at_end end_server
hangs last "g write mb_0 mb_1 file=$dir/in out=$silent/x" "$debug/traffic/start"
await grep -q asked "$dir/server"
processes="$(daemon_pid) $(worker_pid) $(agent)"
SECONDS=0
kill -TERM "$(daemon_pid)"
await all_ended $processes
[ $SECONDS -lt 9 ] || fail "the mount ended after $SECONDS s"
