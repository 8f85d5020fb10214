#!/bin/bash
# A start removes all dead mounts of earlier daemons; live mounts and other file systems stay.
. "$(dirname "$0")/lib/common.bash"

other=$dir/other
mkdir "$other"
clean() {
  local i
  for i in 1 2 3 4 5; do umount -l "$mnt" 2>/dev/null || true; umount -l "$other" 2>/dev/null || true; done
  unmount
}
at_end clean
mounts() { awk -v at="$mnt" '$5 == at' /proc/self/mountinfo | wc -l; }
ended() { ! pgrep -f "^$ROCEFS .*$1\$" -r S,R,D >/dev/null; }
told() { grep -c "unmounting the dead mount of an earlier rocefs" "$dir/said"; }
start() { "$ROCEFS" "$mnt" >/dev/null 2>"$dir/said"; }
serves() { expect "mb_0 mb_1" "$(ls "$ib" | xargs)" "$1"; }
end() { umount "$mnt"; await ended "$mnt"; }

# rocefs is killed and started again several times without a pause, while a file is open.

test_case "a killed rocefs is replaced, time after time"
mounted
for life in 1 2 3 4 5; do
  exec 5<"$debug/seed"
  kill_all "$mnt"
  start || fail "life $life: $(cat "$dir/said")"
  expect 1 "$(told)" "dead mounts that were told of"
  exec 5<&-
  serves "life $life"
  expect 1 "$(mounts)" "mounts in life $life"
done

test_case "the guard removes the mount of a dead supervisor"
exec 5<"$debug/seed"
kill -KILL "$(daemon_pid)"
await gone
expect "Transport endpoint is not connected" "$(quietly cat <&5)" "an open file"
exec 5<&-
start
expect 0 "$(told)" "dead mounts that were told of"
serves "after the supervisor's death"

test_case "a dead mount is found by another name of its path"
kill_all "$mnt"
ln -s mnt "$dir/link"
(cd "$dir" && "$ROCEFS" ./link/ >/dev/null 2>"$dir/said") || fail "$(cat "$dir/said")"
expect 1 "$(told)" "by a link"
serves "by a link"
expect 1 "$(mounts)" "mounts after a start by a link"
umount "$mnt" 2>/dev/null || fusermount3 -u "$mnt"
await ended "./link/"

test_case "several dead mounts on top of each other are removed"
needs_root "mounts on mounts need root"
mounted
"$ROCEFS" "$other" >/dev/null
for i in 1 2 3; do mount --bind "$other" "$mnt"; done
kill_all "$other"
kill_all "$mnt"
expect 4 "$(mounts)" "dead mounts"
start || fail "$(cat "$dir/said")"
expect 4 "$(told)" "of four dead mounts"
expect 1 "$(mounts)" "mounts after four dead ones"
serves "after four dead mounts"
umount "$other"

test_case "a live mount below a dead one is uncovered, and busy"
needs_root "mounts on mounts need root"
echo 4711 >"$debug/links/mb_0-sw_0/delay"
delay=$(cat "$debug/links/mb_0-sw_0/delay")
"$ROCEFS" "$other" >/dev/null
mount --bind "$other" "$mnt"
kill_all "$other"
start && fail "mounted over a live one"
expect 1 "$(told)" "a dead mount over a live one"
grep -q "busy: a rocefs is mounted there" "$dir/said" || fail "of a live one: $(cat "$dir/said")"
expect "$delay" "$(cat "$debug/links/mb_0-sw_0/delay")" "the live one"

test_case "a live mount above a dead one is left alone"
needs_root "mounts on mounts need root"
umount "$other"
"$ROCEFS" "$other" >/dev/null
mount --bind "$other" "$mnt"
kill_all "$mnt"
start && fail "mounted over a live one"
expect 0 "$(told)" "a live mount over a dead one"
expect 2 "$(mounts)" "mounts, a live one over a dead one"
serves "the live one above"
umount "$mnt"
umount "$other"
await ended "$other"

test_case "another file system above a dead mount stays"
needs_root "mounts on mounts need root"
mount -t tmpfs mine "$mnt"
start || fail "$(cat "$dir/said")"
expect 0 "$(told)" "a file system above a dead mount"
expect 3 "$(mounts)" "mounts, with a file system between"
end
expect "mine tmpfs" "$(findmnt -no SOURCE,FSTYPE "$mnt" | tail -n 1 | xargs)" "the file system above"
umount "$mnt"
start
expect 1 "$(told)" "below it"
end
expect 0 "$(mounts)" "mounts at the end"

test_case "a dead mount of another file system is left to its owner"
needs_root "mounts on mounts need root"
needs python3
python3 "$lib/dead_fuse.py" "$mnt"
start && fail "mounted over another's dead mount"
expect "rocefs: $mnt: Transport endpoint is not connected" "$(cat "$dir/said")" "another's dead mount"
expect fuse.other "$(findmnt -no FSTYPE "$mnt")" "another's dead mount"
umount "$mnt"

test_case "an ordinary user removes his own dead mounts"
# An ordinary user: by fusermount3; mounts of others stay. In a mount namespace whose /dev/fuse is open
# to all.
needs_root
needs_setuid_fusermount
unshare -m true 2>/dev/null || skip "no mount namespaces"
unmounted
open_to_users
install -m 755 "$ROCEFS" "$dir/rocefs"
unshare -m bash "$lib/stale_user.bash" || fail "an ordinary user"
