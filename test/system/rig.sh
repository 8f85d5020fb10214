#!/bin/bash
# rocefs run mounts for one command, and leaves nothing; rocefs wait returns when files have values.
. "$(dirname "$0")/lib/common.bash"
export TMPDIR=$dir/tmp
mkdir -p "$TMPDIR"
run() { "$ROCEFS" run "$@" 2>"$dir/said"; }
wait_for() { "$ROCEFS" wait -m "$mnt" "$@"; }
mounts() { awk -v below="$TMPDIR/" '$3 == "fuse.rocefs" && index($2, below) == 1 {print $2}' /proc/mounts; }
nothing_is_left() {
  [ -z "$(mounts)$(ls "$TMPDIR")$(pgrep -f "^rocefs -f .*$TMPDIR/" -r S,R,D)" ]
}
end_all() { local one; for one in $(mounts); do fusermount3 -u -z "$one" || umount -l "$one"; done; }
at_end end_all

test_case "a command finds the mount, its status is that of run, and nothing is left"
expect "mb_0 mb_1" "$(run -- sh -c 'ls "$ROCEFS_MOUNT/class/infiniband"' | xargs)" "devices"
nothing_is_left || fail "left: $(mounts) $(ls "$TMPDIR")"
expect "" "$(cat "$dir/said")" "what is said of success"
for status in 0 1 42 126 127; do
  expect "$status" "$(run --keep never -- sh -c "exit $status"; echo $?)" "status"
done
expect "143" "$(run --keep never -- sh -c 'kill $$'; echo $?)" "a signal's status"
nothing_is_left || fail "left: $(mounts) $(ls "$TMPDIR")"

test_case "options and a configuration reach the mount"
printf '[device a]\n[device b]\n[link a b]\n' >"$dir/pair.ini"
expect "a b 5us" "$(cd "$dir" && run -o clock=virtual -o seed=5 pair.ini -- sh -c 'cd "$ROCEFS_MOUNT"
  echo 5us >kernel/debug/rocefs/clock/advance && [ "$(cat kernel/debug/rocefs/seed)" = 5 ]
  echo $(ls class/infiniband) $(($(cat kernel/debug/rocefs/clock/now_ns) / 1000))us')" "with -o and CONFIG"
cp "$dir/pair.ini" "$dir/a, b\\c.ini"
expect "a b" "$(run "$dir/a, b\\c.ini" -- sh -c 'ls "$ROCEFS_MOUNT/class/infiniband"' | xargs)" "a path with a comma"
expect "left right" "$(run <(printf "[device left]\n[device right]\n[link left right]\n") -- sh -c 'ls "$ROCEFS_MOUNT/class/infiniband"' | xargs)" "a pipe"

for file in /dev/stdin /dev/fd/0 /proc/self/fd/0; do
  expect "a b" "$(run $file -- sh -c 'ls "$ROCEFS_MOUNT/class/infiniband"' <"$dir/pair.ini" | xargs)" "$file, a file"
  expect "a b" "$(run $file -- sh -c 'ls "$ROCEFS_MOUNT/class/infiniband"' < <(cat "$dir/pair.ini") | xargs)" "$file, a pipe"
done
expect "a b" "$(run -o config=/dev/stdin -- sh -c 'ls "$ROCEFS_MOUNT/class/infiniband"' <"$dir/pair.ini" | xargs)" "-o config=/dev/stdin"
expect "rest" "$(echo rest | run -- cat)" "the command's stdin"

test_case "a directory of any name, also a relative one, will do"
mkdir -p "$dir/tmp/a, b[1]"
for place in "$dir/tmp/" "$dir/tmp/a, b[1]" .; do
  expect "below $dir/tmp" "$(cd "$dir/tmp" && TMPDIR=$place timeout 20 "$ROCEFS" run --keep never -- sh -c 'cd / &&
    "$0" wait --timeout 1 kernel/debug/rocefs/seed=1 && case $ROCEFS_MOUNT in "$1"/*) echo "below $1";; esac' \
    "$ROCEFS" "$dir/tmp" 2>&1)" "TMPDIR=$place"
done
rmdir "$dir/tmp/a, b[1]"
nothing_is_left || fail "left: $(mounts) $(ls "$TMPDIR")"

test_case "a caller that ignores SIGCHLD or has closed its files gets the status"
expect 1 "$(timeout 20 perl -e '$SIG{CHLD} = "IGNORE"; exec @ARGV' "$ROCEFS" run --keep never -- false 2>/dev/null; echo $?)" "SIGCHLD ignored"
expect 3 "$(timeout 20 "$ROCEFS" run --keep never -- sh -c 'exit 3' <&- >&- 2>&-; echo $?)" "closed files"
nothing_is_left || fail "left: $(mounts) $(ls "$TMPDIR")"

test_case "a command's status is told to a caller who does not listen any more"
expect 7 "$(timeout 20 perl -e 'pipe(R, W); close(R); open(STDERR, ">&W"); exec @ARGV' "$ROCEFS" run -- sh -c 'exit 7'; echo $?)" "stderr, a closed pipe"
mountpoint -q "$(mounts)" || fail "the mount did not stay"
fusermount3 -u "$(mounts)" && rmdir "$TMPDIR"/rocefs-*
await nothing_is_left
expect 141 "$(run --keep never -- sh -c 'kill -PIPE $$'; echo $?)" "SIGPIPE of the command"

test_case "a run that is stopped keeps no mount"
expect 124 "$(timeout -s INT 1 "$ROCEFS" run -- sh -c 'trap "exit 7" INT TERM; while :; do sleep 0.01; done' 2>/dev/null; echo $?)" "SIGINT"
expect 143 "$(timeout --preserve-status 0.5 "$ROCEFS" run -- sleep 60 2>/dev/null; echo $?)" "SIGTERM"
nothing_is_left || fail "left: $(mounts) $(ls "$TMPDIR")"

nothing_of_it_is_left() { nothing_is_left && [ -z "$(pgrep -f "^$ROCEFS run -- sleep 1.25\$" -r S,R,D)" ]; }
for signal in INT QUIT TERM HUP KILL; do
  for moment in 0.001 0.004 0.01 0.015 0.02 0.03 0.05; do
    timeout --foreground -s $signal $moment "$ROCEFS" run -- sleep 1.25 2>/dev/null || :
    (timeout -s $signal $moment "$ROCEFS" run -- sleep 1.25 || :) 2>/dev/null
  done
  await nothing_of_it_is_left
done

test_case "the mount of a command that fails stays, with the end of its dmesg"
expect "3" "$(run -- sh -c 'echo 7 >"$ROCEFS_MOUNT/kernel/debug/rocefs/links/mb_0-sw_0/loss" 2>/dev/null; exit 3'; echo $?)" "status"
grep -q "'7' is outside 0 to 1 (EINVAL)" "$dir/said" || fail "no dmesg: $(cat "$dir/said")"
kept=$(sed -n 's/.*the mount stays at \([^;]*\);.*/\1/p' "$dir/said")
expect "mb_0 mb_1" "$(ls "$kept/class/infiniband" | xargs)" "the tree that stays"
fusermount3 -u "$kept" && rmdir "$kept"
await nothing_is_left

test_case "a failure is told after a signal that the command has survived, or that is ignored"
told_failure() {  # WHAT
  expect 3 "$status" "status after $1"
  grep -q "sh ended with status 3" "$dir/said" || fail "$1: $(cat "$dir/said")"
  fusermount3 -u "$(mounts)" && rmdir "$TMPDIR"/rocefs-*
  rm "$dir"/it*
  await nothing_is_left
}
# Longer than the time in which a command that a key has stopped ends.
env --default-signal=INT "$ROCEFS" run -- sh -c 'trap "touch $0.told" INT; touch $0; until [ -e $0.told ]; do sleep 0.01; done
  sleep 2.1; exit 3' "$dir/it" 2>"$dir/said" &
await test -e "$dir/it"
kill -INT $!
status=0
wait $! || status=$?
told_failure SIGINT
env --ignore-signal=HUP,INT "$ROCEFS" run -- sh -c 'touch $0; until [ -e $0.go ]; do sleep 0.01; done; exit 3' "$dir/it" 2>"$dir/said" &
await test -e "$dir/it"
kill -HUP $!
kill -INT $!
touch "$dir/it.go"
status=0
wait $! || status=$?
told_failure "ignored signals"

test_case "a caller who reads all output does not wait for a mount that stays"
said=$(timeout 20 "$ROCEFS" run --keep always -- true 2>&1) || fail "the output has no end"
fusermount3 -u "$(mounts)" && rmdir "$TMPDIR"/rocefs-*
await nothing_is_left
exec 9>"$dir/lock"
flock 9
"$ROCEFS" run --keep always -- true 2>/dev/null
exec 9>&-
flock -n "$dir/lock" true || fail "the mount holds a file of its caller"
fusermount3 -u "$(mounts)" && rmdir "$TMPDIR"/rocefs-*
await nothing_is_left

test_case "what cannot run leaves nothing"
expect "127 rocefs run: no-such-command: No such file or directory" "$(outcome_of "$ROCEFS" run -- no-such-command)" "not found"
expect "126 rocefs run: $dir: Permission denied" "$(outcome_of "$ROCEFS" run -- "$dir")" "a directory"
expect "125 rocefs run: $dir/no.ini: No such file or directory" "$(outcome_of "$ROCEFS" run "$dir/no.ini" -- true)" "no file"
printf '[device a]\nrate = many\n' >"$dir/bad.ini"
[[ $(outcome_of "$ROCEFS" run "$dir/bad.ini" -- true) == "125 rocefs run: $dir/bad.ini:2: "* ]] || fail "a wrong file"
expect "2 rocefs run: a command is wanted behind --" "$(outcome_of "$ROCEFS" run | head -n 1)" "no command"
expect "2 rocefs run: b: a command stands behind --" "$(outcome_of "$ROCEFS" run a b -- true | head -n 1)" "two files"
no_fuse() { unshare -m sh -c 'mount -t tmpfs none /dev && mknod /dev/null c 1 3 && exec "$@"' sh "$@"; }
if $root; then
  why=$(outcome_of no_fuse "$ROCEFS" "$mnt" | sed 's/.* rocefs: [^:]*: //')
  expect "125 rocefs run: $TMPDIR/rocefs-XXXXXX: $why" \
    "$(outcome_of no_fuse "$ROCEFS" run -- echo ran | sed 's|/rocefs-[^:/]*:|/rocefs-XXXXXX:|')" "no /dev/fuse"
fi
TMPDIR=$dir/nowhere
expect "125 rocefs run: $dir/nowhere: No such file or directory" "$(outcome_of "$ROCEFS" run -- true)" "no TMPDIR"
TMPDIR=$dir/tmp
nothing_is_left || fail "left: $(mounts) $(ls "$TMPDIR")"

test_case "a signal reaches the command; the mount ends with a run that is killed"
for signal in TERM HUP INT QUIT; do
  env --default-signal=INT,QUIT "$ROCEFS" run -- sh -c 'trap "echo told >$0; exit 5" '$signal'
    echo $$ >$0.pid; while :; do sleep 0.01; done' "$dir/told" 2>/dev/null &
  await test -s "$dir/told.pid"
  kill -$signal $!
  status=0
  wait $! || status=$?
  expect "5 told" "$status $(cat "$dir/told")" "after SIG$signal"
  nothing_is_left || fail "left: $(mounts) $(ls "$TMPDIR")"
  rm "$dir"/told*
done
"$ROCEFS" run -- sh -c 'echo $$ >$0; exec sleep 60' "$dir/sleeper" &
await test -s "$dir/sleeper"
kill -KILL $!
await nothing_is_left
kill "$(cat "$dir/sleeper")"

test_case "a mount that ends before its command is reported"
expect "125" "$(run -- sh -c 'fusermount3 -u "$ROCEFS_MOUNT"; until ! pgrep -f "^rocefs -f .*$ROCEFS_MOUNT" -r S,R,D >/dev/null; do :; done'; echo $?)" "status"
grep -q "the mount has ended by itself; the command ended with status 0" "$dir/said" || fail "$(cat "$dir/said")"
for _ in 1 2 3 4 5 6 7 8; do
  expect "125" "$(run --keep never -- sh -c 'fusermount3 -u "$ROCEFS_MOUNT"'; echo $?)" "while its processes end"
done
for keep in never always; do
  for _ in 1 2 3 4 5 6 7 8; do
    expect "125" "$(run --keep $keep -- bash -c 'server=$(pgrep -of "^rocefs -f .*$ROCEFS_MOUNT"); kill -KILL $server'; echo $?)" \
      "a server that was killed"
  done
done
expect "" "$(mounts)$(ls "$TMPDIR")" "mounts and directories of a server that was killed"
await nothing_is_left
expect "125" "$(run -- sh -c 'fusermount3 -u "$ROCEFS_MOUNT" && touch "$ROCEFS_MOUNT/file"'; echo $?)" "a directory with a file"
grep -q "rocefs run: $(echo "$TMPDIR"/rocefs-*) stays: Directory not empty" "$dir/said" || fail "$(cat "$dir/said")"
rm -r "$TMPDIR"/rocefs-*

test_case "the mount is not announced to the service manager of the caller"
needs python3
python3 "$lib/service_manager.py" "$dir/notify" "$dir/heard" >"$dir/listening" &
at_end eval "kill $! 2>/dev/null"
await test -s "$dir/listening"
expect "$dir/notify 60000000" "$(NOTIFY_SOCKET=$dir/notify WATCHDOG_USEC=60000000 run --keep never -- \
  sh -c 'echo "$NOTIFY_SOCKET $WATCHDOG_USEC"')" "the command's environment"
NOTIFY_SOCKET=$dir/notify mounted
await grep -q "READY=1" "$dir/heard"
expect 1 "$(wc -l <"$dir/heard")" "what was said by both"
unmounted

test_case "wait returns at once where conditions hold, and 124 with each file's value where they do not"
mounted
wait_for 'class/infiniband/mb_*/ports/1/state=4: ACTIVE' kernel/debug/rocefs/seed=1 'kernel/debug/rocefs/seed<2' || fail "conditions that hold"
ROCEFS_MOUNT=$mnt "$ROCEFS" wait "$debug/seed=1" seed!=2 --timeout 0 2>/dev/null && fail "a file that is not there"
(cd / && "$ROCEFS" wait "$debug/seed=1") || fail "an absolute path"
echo down >"$debug/links/mb_1-sw_0/state"
expect "124 rocefs wait: class/infiniband/mb_1/ports/1/state is '1: DOWN', not '4: ACTIVE'
rocefs wait: kernel/debug/rocefs/links/mb_0-sw_0/rate: '10G' is no number
rocefs wait: kernel/debug/rocefs/no: No such file or directory
rocefs wait: kernel/debug/rocefs/no*: no such file
rocefs wait: kernel/debug/rocefs/seed is '1', not other than '1'
rocefs wait: kernel/debug/rocefs/seed is '1', not > 1" "$(outcome_of wait_for --timeout 50ms \
  'class/infiniband/mb_*/ports/1/state=4: ACTIVE' 'kernel/debug/rocefs/links/*/rate>1' kernel/debug/rocefs/no=1 \
  'kernel/debug/rocefs/no*=1' kernel/debug/rocefs/seed!=1 'kernel/debug/rocefs/seed>1' kernel/debug/rocefs/seed=1)" "time-out"

test_case "wait sees a knob, a counter and a file that appear while it waits"
for time in 1h 1.5m 90m 100ms; do
  expect "0 " "$(outcome_of wait_for --timeout $time kernel/debug/rocefs/seed=1)" "--timeout $time"
done
expect "2 rocefs wait: --timeout 1000000h: none has no limit" "$(outcome_of wait_for --timeout 1000000h kernel/debug/rocefs/seed=1 | head -n 1)" "too long"
expect "2 rocefs wait: --timeout xm: a number is wanted before m or h" "$(outcome_of wait_for --timeout xm kernel/debug/rocefs/seed=1 | head -n 1)" "no time"
wait_for --timeout 60 kernel/debug/rocefs/links/mb_1-sw_0/state=up 'class/infiniband/mb_1/ports/1/state=4: *' &
knob=$!
wait_for --timeout 60 kernel/debug/rocefs/traffic/late/state=done 'class/infiniband/mb_1/ports/1/counters/port_rcv_packets>=100' &
late=$!
echo up >"$debug/links/mb_1-sw_0/state"
wait $knob || fail "a knob"
echo "late send mb_0 mb_1 count=100" >"$debug/traffic/start"
wait $late || fail "a flow that appears"

test_case "wait ends in time where the files do not answer"
kill -STOP $(pgrep -f "^$ROCEFS .*$mnt\$" -r S,R,D) $(pgrep -P "$(daemon_pid)")
status=0
said=$(timeout -s KILL 20 "$ROCEFS" wait --timeout 0.1 "$debug/links/*/rate=1G" 2>&1) || status=$?
named=$(outcome_of timeout -s KILL 20 "$ROCEFS" wait -m "$mnt" --timeout 0.1 kernel/debug/rocefs/seed=1)
kill -CONT $(pgrep -f "^$ROCEFS .*$mnt\$") $(pgrep -P "$(daemon_pid)")
expect "124 rocefs wait: the files do not answer" "$status $said" "a mount that is stopped"
expect "124 rocefs wait: the files do not answer" "$named" "a mount that is named"

test_case "wait ends with its mount, and tells mistakes"
looks() { ls -l "/proc/$1/fd" | grep -q " $mnt/"; }  # PID
ln -s "$mnt" "$dir/link"
for path in kernel/debug/rocefs/seed "$debug/seed" "$dir/link/kernel/debug/rocefs/s[e]ed"; do
  mounted
  "$ROCEFS" wait -m "$mnt" --timeout none "$path=2" 2>"$dir/said" &
  waiting=$!
  await looks $waiting
  unmount
  status=0
  wait $waiting || status=$?
  expect "1 rocefs: wait: $mnt: the mount has ended" "$status $(cat "$dir/said")" "$path of a mount that has ended"
done
for arguments in "" "seed" "--timeout many seed=1" "--timeout" "--none seed=1" "=1" "seed>x"; do
  expect 2 "$("$ROCEFS" wait -m "$mnt" $arguments 2>/dev/null; echo $?)" "status of '$arguments'"
done
expect 1 "$("$ROCEFS" wait -m "$dir/no" seed=1 2>/dev/null; echo $?)" "no mount there"

test_case "wait tells of a directory that it may not read or search, also with wildcards"
open_to_users
mkdir -p "$dir/bin" "$dir/closed/one"
chmod $($root && echo 700 || echo 0) "$dir/closed"
install -m 755 "$ROCEFS" "$dir/bin"
expect "1 rocefs: wait: $dir/closed: Permission denied" \
  "$(outcome_of as_user "$dir/bin/rocefs" wait --timeout 0 "$dir/closed/*/state=1")" "a closed directory"
! $root || expect "124 rocefs wait: $dir/closed/*/state: no such file" \
  "$(outcome_of "$dir/bin/rocefs" wait --timeout 0 "$dir/closed/*/state=1")" "one who may"
chmod $($root && echo 744 || echo 444) "$dir/closed"
for path in '*/state' 'one/state'; do
  expect "1 rocefs: wait: $dir/closed/one/state: Permission denied" \
    "$(outcome_of as_user "$dir/bin/rocefs" wait --timeout 0 "$dir/closed/$path=1")" "a directory that lists its names alone"
done
mkdir -m 755 "$dir/closed/"{own,own/lower}
mkdir -m 700 "$dir/closed/own/root"
echo 1 >"$dir/closed/own/lower/state"
chmod 755 "$dir/closed"
expect "0 " "$(outcome_of as_user "$dir/bin/rocefs" wait --timeout 0 "$dir/closed/own/*/state=1")" "beside one that is closed"
