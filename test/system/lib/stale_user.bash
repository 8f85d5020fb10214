# Dead mounts of an ordinary user: run as root in a mount namespace of its own, with a rocefs in
# $ROCEFS_TEST_DIR that he may run.
. "$(dirname "$0")/common.bash"
trap - EXIT
start() { as_user "$dir/rocefs" "$1" >/dev/null 2>"$dir/said"; }
kill_all() { kill -KILL $(pgrep -f "^$dir/rocefs $1\$" -r S,R,D | sort -rn); }

mkdir "$dir/devices"
mount -t tmpfs -o mode=755 devices "$dir/devices"
mknod -m 666 "$dir/devices/fuse" c 10 229
mount --bind "$dir/devices/fuse" /dev/fuse
chown 65534:65534 "$mnt"

for life in 1 2; do
  start "$mnt" || fail "$(cat "$dir/said")"
  expect "$((life - 1))" "$(grep -c "unmounting the dead mount" "$dir/said" || true)" "an ordinary user's dead mounts"
  expect 65534 "$(as_user stat -c %u "$mnt/class")" "whose it is"
  kill_all "$mnt"
done
start "$mnt" || fail "$(cat "$dir/said")"
kill -KILL "$(pgrep -of "^$dir/rocefs $mnt\$" -r S,R,D)"
await not_mounted  # his guard has removed it
# When two find the same dead mount, the second one does not take away what the first has
# mounted: while this one is about to, another one starts.
mkdir "$dir/first"
cat >"$dir/first/fusermount3" <<FIRST
#!/bin/bash
PATH=\${PATH#*:}
if [ "\$1" = -u ]; then "$dir/rocefs" "$mnt" >/dev/null 2>&1 && echo "another one has mounted" >>"$dir/second"; fi
exec fusermount3 "\$@"
FIRST
chmod 755 "$dir/first" "$dir/first/fusermount3"
install -m 666 /dev/null "$dir/second"
start "$mnt"
kill_all "$mnt"
PATH=$dir/first:$PATH start "$mnt" || fail "beside another one: $(cat "$dir/said")"
expect "" "$(cat "$dir/second")" "another one, beside the first"
expect 1 "$(awk -v at="$mnt" '$5 == at' /proc/self/mountinfo | wc -l)" "mounts"
as_user fusermount3 -u "$mnt"

# A user may not take a dead mount of root away; rocefs says so.
"$dir/rocefs" -o allow_other "$mnt" >/dev/null
kill_all "-o allow_other $mnt"
start "$mnt" && fail "took root's mount away"
expect "rocefs: $mnt: an earlier rocefs has ended, and its mount cannot be unmounted" "$(tail -n 1 "$dir/said")" "root's dead mount"
expect fuse.rocefs "$(findmnt -no FSTYPE "$mnt")" "root's dead mount"
umount "$mnt"
chown 0:0 "$mnt"
