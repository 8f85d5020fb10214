# Dead mounts as an ordinary user meets them: stale_user.bash, in a mount namespace of its own, with
# `dir` (which has a rocefs that he may run), `mnt` and the functions of common.bash.
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
start() { nobody "$dir/rocefs" "$1" >/dev/null 2>"$dir/said"; }
kill_all() { kill -KILL $(pgrep -of "^$dir/rocefs $1\$" -r S,R,D; pgrep -P "$(pgrep -of "^$dir/rocefs $1\$" -r S,R,D)"); }

mkdir "$dir/devices"
mount -t tmpfs -o mode=755 devices "$dir/devices"
mknod -m 666 "$dir/devices/fuse" c 10 229
mount --bind "$dir/devices/fuse" /dev/fuse
chown 65534:65534 "$mnt"

for life in 1 2; do
  start "$mnt" || fail "$(cat "$dir/said")"
  expect "$((life - 1))" "$(grep -c "unmounting the dead mount" "$dir/said" || true)" "an ordinary user's dead mounts"
  expect 65534 "$(nobody stat -c %u "$mnt/class")" "whose it is"
  kill_all "$mnt"
done
start "$mnt"
nobody fusermount3 -u "$mnt"

# Root's dead mount is not his to take away; rocefs says so.
"$dir/rocefs" -o allow_other "$mnt" >/dev/null
kill_all "-o allow_other $mnt"
start "$mnt" && fail "took root's mount away"
expect "rocefs: $mnt: an earlier rocefs has ended, and its mount may not be taken away" "$(tail -n 1 "$dir/said")" "root's dead mount"
expect fuse.rocefs "$(findmnt -no FSTYPE "$mnt")" "root's dead mount"
umount "$mnt"
chown 0:0 "$mnt"
