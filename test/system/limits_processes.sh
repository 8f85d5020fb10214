#!/bin/bash
# A user who may have few processes: what does not fit is told, with status 1, and leaves nothing behind; from some
# number on it fits.
. "$(dirname "$0")/lib/common.bash"
[ "$(id -u)" -eq 0 ] || { echo "only root finds a user without processes"; exit 77; }
! grep -qa '__asan_init\|__tsan_init' "$ROCEFS" || { echo "a sanitizer has threads of its own"; exit 77; }
user=60117
. "$(dirname "$0")/lib/ordinary_user.bash"
as_user unshare --user --map-root-user --mount true 2>/dev/null || { echo "no user namespaces for users"; exit 77; }
chmod 711 "$dir" "$(dirname "$dir")"
install -m 755 "$ROCEFS" "$dir/rocefs"
install -m 644 "$(dirname "$0")/../../tools/scenarios/loss.ini" "$dir"
mkdir "$dir/own" "$dir/own/mnt"
trap 'pkill -KILL -u "$user" || true; unmount' EXIT
none_left() { ! pgrep -u $user -r S,R,D >/dev/null; }
limited() {  # N COMMAND…: another user, with N processes and threads; -> $outcome
  user=$((user + 1))  # what has ended counts until it is reaped, and that is not ours to do
  chown -R $user "$dir/own"
  outcome=0
  as_user bash -c 'ulimit -u "$0" && exec "$@"' "$@" >"$dir/out" 2>"$dir/said" </dev/null || outcome=$?
}
told() {  # it did not fit
  expect 1 $outcome "with $1: $(cat "$dir/said")"
  grep -Eq "^rocefs: .*(Resource temporarily unavailable|no thread may be started)" "$dir/said" || fail "with $1: $(cat "$dir/said")"
  await none_left
}

# A mount, which is the user's own: only he may look at it.
there() { nsenter -t "$daemon" -m setpriv --reuid=$user --regid=$user --clear-groups timeout -s KILL 30 "$@"; }
for n in {1..40}; do
  limited $n unshare --user --map-root-user --mount "$dir/rocefs" -o seed=7 "$dir/own/mnt"
  [ $outcome -eq 0 ] && break
  told $n
done
[ $outcome -eq 0 ] || fail "40 are too few: $(cat "$dir/said")"
daemon=$(pgrep -u $user -o -x rocefs)
expect 7 "$(there cat "$dir/own/mnt/kernel/debug/rocefs/seed")" "the seed, with $n"
kill -TERM "$daemon"
await none_left

for n in {1..40}; do
  limited $n "$dir/rocefs" sim "$dir/loss.ini"
  [ $outcome -eq 0 ] && break
  told $n
done
expect 0 $outcome "sim, with $n: $(cat "$dir/said")"
grep -q "1 of 1 flows done" "$dir/out" || fail "sim, with $n: $(cat "$dir/out" "$dir/said")"
