#!/bin/bash
# Mounting and unmounting, with and without errors.
. "$(dirname "$0")/lib/common.bash"


test_case "a failed mount is reported in one line"
expect "1 rocefs: $dir/none: No such file or directory" "$(outcome_of "$ROCEFS" "$dir/none")" "no such place"
expect "1 rocefs: wiat is neither a command nor a directory: rocefs --help tells more" "$(outcome_of "$ROCEFS" wiat)" "a mistyped command"
expect "1 rocefs: wiat is no command: wait is one, and rocefs --help tells more" "$(outcome_of "$ROCEFS" wiat state=up)" "one with a word"
expect "1 rocefs: mounted is no command, and state=up no directory: rocefs --help tells more" "$(outcome_of "$ROCEFS" mounted state=up)" "another with a word"
expect "2 rocefs: a mount point is wanted, not an empty word" "$(outcome_of "$ROCEFS" '' | head -n 1)" "an empty word"
for word in emter entr hots deatch atach rum; do
  outcome_of "$ROCEFS" $word "$mnt" | grep -q "^1 rocefs: $word is no command: [a-z]* is one, and rocefs --help tells more" || fail "$word: $(outcome_of "$ROCEFS" $word "$mnt")"
done
not_mounted || fail "a mistyped command mounts"
expect "2 rocefs: entr is no command: enter is one" "$(outcome_of "$ROCEFS" entr -m "$mnt" -- ls | head -n 1)" "a mistyped command with options"
touch "$dir/file"
expect "1 rocefs: $dir/file: Not a directory" "$(outcome_of "$ROCEFS" "$dir/file")" "a file"
for option in max_read=4096 subtype=other; do
  expect "2 rocefs: $option: not supported Try 'rocefs --help'." "$(outcome_of "$ROCEFS" -o $option "$mnt" | xargs -d '\n')" "-o $option"
done

test_case "a full disk is reported"
for words in --help --version "sim --help" "enter --help" "enter --version"; do
  # shellcheck disable=SC2086
  expect "1 rocefs: stdout: No space left on device" "$(status=0; text=$("$ROCEFS" $words 2>&1 >/dev/full) || status=$?; echo "$status $text")" "$words on a full disk"
done
full() { status=0 text=$("$@" 2>&1 >/dev/full) || status=$?; echo "$status $text"; }
for option in --help --version; do
  expect "1 rocefs view: stdout: No space left on device" "$(full "$ROCEFS" view $option)" "view $option on a full disk"
  expect "1 rocefs top: stdout: No space left on device" "$(full "$ROCEFS" top $option)" "top $option on a full disk"
  expect "1 mango-ctl: stdout: No space left on device" "$(full "$(dirname "$ROCEFS")/mango-ctl" $option)" "mango-ctl $option on a full disk"
done

test_case "standard files that are closed take nothing of others"
closed() { timeout 20 "$ROCEFS" "$@" 0<&- >&- 2>&-; }
closed "$mnt" || fail "a mount: status $?"
expect "mb_0 mb_1" "$(ls "$ib" | xargs)" "a mount without standard files"
unmounted
status=0
timeout 20 "$ROCEFS" "$mnt" 0<&- >&- 2>"$dir/none" || status=$?
expect "0 " "$status $(cat "$dir/none")" "a mount without stdout"
unmounted
expect "1 rocefs: stdout: Bad file descriptor" "$(status=0; text=$("$ROCEFS" --version 2>&1 >&-) || status=$?; echo "$status $text")" "--version without stdout"

test_case "a mount point in use is busy"
mounted
expect "1 rocefs: $mnt: busy: a rocefs is mounted there" "$(outcome_of "$ROCEFS" "$mnt")" "busy"

test_case "a name that is like no command is a source"
for word in nic nic0 host1 mlx5 rdma none; do
  mounted $word
  expect "$word" "$(findmnt -no SOURCE "$mnt")" "the source"
done
unmounted
mounted

test_case "a mount ends by fusermount3, by SIGTERM and by umount"
fusermount3 -u "$mnt"
await gone
mounted
kill -TERM "$(daemon_pid)"
await gone
mounted
umount "$mnt" 2>/dev/null || fusermount3 -u "$mnt"
await gone

test_case "SIGTERM ends a mount whose worker is stopped"
mounted
supervisor=$(daemon_pid)
kill -STOP "$(worker_pid)"
kill "$supervisor"
await gone

test_case "SIGTERM keeps every captured packet in the file"
mounted
echo "$dir/cap.pcap" >"$debug/pcap"
echo "f write mb_0 mb_1 count=200" >"$debug/traffic/start"
await state_is f "done"
packets=$(cut -d' ' -f2 "$debug/pcap")
kill -TERM "$(daemon_pid)"
await gone
[ "$packets" -gt 0 ] || fail "nothing captured"
expect "$((200 * 65536))" "$("$(dirname "$0")/../../tools/pcap-payload" "$dir/cap.pcap" 2>/dev/null | wc -c)" \
  "payload in the capture"

test_case "mode= is that of the files that can be written, uid= needs others who may look"
mounted -o mode=660
expect 660 "$(stat -c %a "$debug/links/mb_0-sw_0/loss")" "a knob"
expect 220 "$(stat -c %a "$debug/traffic/start")" "a trigger that cannot be read"
expect 444 "$(stat -c %a "$debug/seed")" "a value"
expect 666 "$(stat -c %a "$debug/get")" "a file for all"
unmounted
for bad in 44 777 0x1ff 0688 ""; do
  expect "2 rocefs: mode=$bad: 600 to 666 is wanted, such as 664 for the group too" "$(outcome_of "$ROCEFS" -o mode="$bad" "$mnt" | head -n 1)" "mode=$bad"
done
expect "2 rocefs: uid=4711 requires allow_other: only the user who mounts has access else" \
  "$(outcome_of "$ROCEFS" -o uid=4711 "$mnt" | head -n 1)" "another owner, who has no access"

test_case "the next rocefs removes a dead mount"
mounted
kill_all
await sh -c "! ls '$mnt' >/dev/null 2>&1"
"$ROCEFS" "$mnt" >/dev/null 2>"$dir/stale"
grep -q "unmounting the dead mount" "$dir/stale" || fail "silent about the dead mount"
expect "mb_0 mb_1" "$(ls "$ib" | xargs)" "after a dead mount"
fusermount3 -u "$mnt"
await gone

test_case "mount -t fuse.rocefs finds the program and passes options"
$root && [ -e /sbin/mount.fuse3 ] && [ ! -e /usr/bin/rocefs ] || skip "not root, no mount.fuse3, or an installed rocefs"
unmounted
ln -s "$ROCEFS" /usr/bin/rocefs
at_end rm -f /usr/bin/rocefs
mount -t fuse.rocefs -o clock=virtual,dev,suid nic0 "$mnt" >/dev/null
expect "nic0 fuse.rocefs" "$(findmnt -no SOURCE,FSTYPE "$mnt" | xargs)" "mount -t fuse.rocefs"
expect "real [virtual]" "$(cat "$debug/clock/mode")" "options through mount(8)"
umount "$mnt"
await not_mounted

test_case "an ordinary user mounts and owns the files"
needs_root
needs_setuid_fusermount
[ "$(stat -c %a /dev/fuse)" = 666 ] || skip "/dev/fuse is not open to users"
open_to_users
unmounted
chown 65534:65534 "$mnt"
as_user "$ROCEFS" "$mnt" >/dev/null
expect 65534 "$(as_user stat -c %u "$mnt/class")" "owner"
as_user sh -c 'echo 0.5 > "$1"' sh "$debug/links/mb_0-sw_0/loss"
as_user fusermount3 -u "$mnt"
await gone
chown 0:0 "$mnt"

test_case "root's daemon opens files with the rights of the user who names them"
needs_root
mounted -o allow_other
chmod 666 "$debug/traffic/start" "$debug/pcap"
echo secret >"$dir/secret"
chmod 600 "$dir/secret"
open_to_users
store_as_user() { quietly as_user bash -c 'echo "$1" > "$2"' sh "$1" "$2"; }
expect "Permission denied" "$(store_as_user "f write mb_0 mb_1 file=$dir/secret" "$debug/traffic/start")" "file="
expect "Permission denied" "$(store_as_user "$dir/cap" "$debug/pcap")" "pcap"
[ ! -e "$dir/cap" ] || fail "pcap made a file where the writer may not"
# Relative to the writer's directory.
(cd "$dir" && echo "g write mb_0 mb_1 file=secret out=copied" >"$debug/traffic/start")
await state_is g "done"
cmp "$dir/secret" "$dir/copied"
expect root "$(stat -c %U "$dir/copied")" "owner of out="

test_case "set stores what its writer may store himself, and all users may write it"
loss=$debug/links/mb_0-sw_0/loss other=$debug/links/sw_0-mb_0/loss
short=kernel/debug/rocefs/links
expect "Permission denied" "$(store_as_user "$short/mb_0-sw_0/loss=0.5" "$debug/set")" "root's knob"
last_dmesg_says "links/mb_0-sw_0/loss: user $user may not write it (EACCES)"
chmod 666 "$loss"
expect "Permission denied" "$(store_as_user "$short/*-*/loss=0.5" "$debug/set")" "one of several"
expect 0 "$(cat "$loss")" "the one that he may write"
expect "" "$(store_as_user "$short/mb_0-sw_0/loss=0.5" "$debug/set")" "a knob that he may write"
expect 0.5 "$(cat "$loss")" "his value"
chgrp 4242 "$other" && chmod 664 "$other"
expect "" "$(setpriv --reuid="$user" --regid="$user" --groups 4242 sh -c "echo $short/sw_0-mb_0/loss=0.25 >$debug/set" 2>&1)" "by a group"
expect 0.25 "$(cat "$other")" "by a group"
chmod 444 "$loss"
expect "Permission denied" "$(store "$short/mb_0-sw_0/loss=0" "$debug/set")" "root, and a file that nobody may write"
chmod 700 "$debug/links"
expect "Permission denied" "$(store_as_user "$short/sw_0-mb_0/loss=0" "$debug/set")" "a directory that he may not search"

test_case "refused stores of other users leave the log to others"
store before "$debug/get" >/dev/null
as_user bash -c 'for i in {1..4000}; do echo "[" >"$1"; done' sh "$debug/get" 2>/dev/null || :
grep -q "get: before: " "$debug/dmesg" || fail "an earlier line is gone"
told=$(grep -c "debug/rocefs/get: " "$debug/dmesg")
[ "$told" -lt 3000 ] || fail "$told lines of 4000 refusals"

test_case "a mount in the background holds no file of its caller, and reads a configuration that is one"
printf '[device a]\n[device b]\n[link a b]\n' >"$dir/pair.ini"
for options in "" "-o config=/dev/fd/8" "-o config=/dev/stdin"; do
  unmounted
  (flock 9 && "$ROCEFS" $options "$mnt" <"$dir/pair.ini" >/dev/null 7<&9) 8<"$dir/pair.ini" 9>"$dir/lock"
  flock -n "$dir/lock" true || fail "the mount holds a lock, with '$options'"
  expect "$([ -n "$options" ] && echo a b || echo mb_0 mb_1)" "$(ls "$ib" | xargs)" "devices with '$options'"
done
