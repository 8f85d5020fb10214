# Fixtures of the system tests: a mount of its own for each script, unmounted whatever happens.
# ROCEFS is the daemon, ROCEFS_TEST_DIR a private directory with an empty mnt/.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/cases.bash"
[ -e /dev/fuse ] || skip "no /dev/fuse here"

dir=$ROCEFS_TEST_DIR
mnt=$dir/mnt
debug=$mnt/kernel/debug/rocefs
ib=$mnt/class/infiniband

unmount() { fusermount3 -u "$mnt" 2>/dev/null || umount -l "$mnt" 2>/dev/null || true; }
at_end unmount
after_failure() { mountpoint -q "$mnt" || echo "nothing is mounted at $mnt now"; }

mounted() { "$ROCEFS" "$@" "$mnt" >/dev/null; }
# The process that was started, which supervises; and the one that serves and does all the work.
worker_pid() { pgrep -P "$(daemon_pid)" -r S,R,D -x rocefs-worker | head -n 1; }
daemon_pid() { pgrep -of "^$ROCEFS .*$mnt\$" -r S,R,D; }
# Unmounted, and its processes have ended: they would be taken for those of the next.
gone() { ! mountpoint -q "$mnt" && [ -z "$(daemon_pid)" ]; }

# Waits until a command succeeds, at most 60 seconds. Nothing ever comes from $silence: reading it sleeps,
# without a process each time.
exec {silence}<> <(:)
await() {
  local end=$((SECONDS + 60))
  until "$@"; do
    [ $SECONDS -lt $end ] || fail "waited in vain for: $*"
    read -rt 0.01 -u "$silence" || true
  done
}
# Whether none of these processes runs, or has more to do than to be waited for.
all_ended() {
  local pid state
  for pid; do
    state=Z
    { read -r _ _ state _ <"/proc/$pid/stat"; } 2>/dev/null || true
    [ "$state" = Z ] || return 1
  done
}
state_is() { [ "$(<"$debug/traffic/$1/state")" = "$2" ]; }
value() { awk -v key="$1" '$1 == key {print $2}' "$2"; }
# store TEXT FILE: the errno's message of a refused echo, or ok.
store() {
  local said
  if said=$(LC_ALL=C; { echo "$1" >"$2"; } 2>&1); then echo ok; else echo "${said##*: }"; fi
}
