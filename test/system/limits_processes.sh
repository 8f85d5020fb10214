#!/bin/bash
# A user with a low limit of processes: a start that does not fit is reported with status 1 and leaves nothing
# behind; from some number on it fits.
. "$(dirname "$0")/lib/common.bash"
needs_root "only root finds a user without processes"
! grep -qa '__asan_init\|__tsan_init' "$ROCEFS" || skip "a sanitizer has threads of its own"
user=60117
needs_mounters
as_mounter unshare --user --map-root-user --mount true 2>/dev/null || skip "no user namespaces for users"
open_to_users
install -m 755 "$ROCEFS" "$dir/rocefs"
install -m 644 "$(dirname "$0")/../../tools/scenarios/loss.ini" "$dir"
mkdir "$dir/own" "$dir/own/mnt"
end_users() { pkill -KILL -u "$user" || true; }
at_end end_users
none_left() { ! pgrep -u $user -r S,R,D >/dev/null; }
limited() {  # N COMMAND…: another user, with N processes and threads; -> $outcome
  user=$((user + 1))  # what has ended counts until it is reaped, and that is not ours to do
  chown -R $user "$dir/own"
  outcome=0
  as_mounter bash -c 'ulimit -u "$0" && exec "$@"' "$@" >"$dir/out" 2>"$dir/said" </dev/null || outcome=$?
}
told() {  # it did not fit
  expect 1 $outcome "with $1: $(cat "$dir/said")"
  grep -Eq "^rocefs: .*(Resource temporarily unavailable|cannot start a thread)" "$dir/said" || fail "with $1: $(cat "$dir/said")"
  await none_left
}

# A mount of the user: only he may read it.
there() { nsenter -t "$daemon" -m setpriv --reuid=$user --regid=$user --clear-groups timeout -s KILL 30 "$@"; }

test_case "a mount with too few processes says so, or serves"
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

test_case "a simulation with too few processes says so, or runs"
for n in {1..40}; do
  limited $n "$dir/rocefs" sim "$dir/loss.ini"
  [ $outcome -eq 0 ] && break
  told $n
done
expect 0 $outcome "sim, with $n: $(cat "$dir/said")"
grep -q "1 of 1 flows done" "$dir/out" || fail "sim, with $n: $(cat "$dir/out" "$dir/said")"
