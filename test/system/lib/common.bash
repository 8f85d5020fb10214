# Fixtures of the system tests. ROCEFS is the daemon, ROCEFS_TEST_DIR a private directory with an empty mnt/: a
# script mounts there, and whatever happens it is unmounted at the end.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/cases.bash"
[ -e /dev/fuse ] || skip "no /dev/fuse here"

lib=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
dir=$ROCEFS_TEST_DIR
mnt=$dir/mnt
debug=$mnt/kernel/debug/rocefs
ib=$mnt/class/infiniband
root=false
[ "$(id -u)" -ne 0 ] || root=true

# ---- What a script needs ----
needs() {  # TOOL…
  local tool
  for tool; do command -v "$tool" >/dev/null || skip "no $tool"; done
}
needs_root() { $root || skip "${*:-not root}"; }
# A mount in which commands can run by `rocefs enter`.
needs_enter() { "$ROCEFS" enter -m "$mnt" true 2>"$dir/why" || skip "nobody can enter: $(cat "$dir/why")"; }
# The thread of ThreadSanitizer is one too many for unshare(2).
needs_user_namespaces() {
  as_user unshare -Urm true 2>/dev/null && [[ $ROCEFS_BUILD != */tsan ]] || skip "no user namespaces for users"
}
needs_provider() { [ -e "$(dirname "$ROCEFS")/../lib/librocefs-rdmav34.so" ] || skip "no provider here"; }
needs_setuid_fusermount() {
  [ -u "$(command -v fusermount3)" ] && [ -r /etc/mtab ] || skip "fusermount3 is not setuid, or no /etc/mtab"
}

# ---- A mount ----
# mounted [OPTION…]: mounts at $mnt; what a failed case has left mounted there is unmounted first.
mounted() {
  ! mountpoint -q "$mnt" || unmounted
  "$ROCEFS" "$@" "$mnt" >/dev/null
}
unmount() { fusermount3 -u "$mnt" 2>/dev/null || umount -l "$mnt" 2>/dev/null || true; }
# Unmounts, and waits until its processes have ended: they would be taken for those of the next mount.
unmounted() {
  local processes
  processes=$(pgrep -f "^$ROCEFS .*$mnt\$" -r S,R,D) || true
  unmount
  await gone
  await all_ended $processes
}
not_mounted() { ! mountpoint -q "$mnt"; }
gone() { not_mounted && [ -z "$(daemon_pid)" ]; }
at_end unmount
after_failure() { ! not_mounted || echo "nothing is mounted at $mnt now"; }

# The process that was started, which supervises; and the one that serves and does all the work.
daemon_pid() { pgrep -of "^$ROCEFS .*$mnt\$" -r S,R,D; }
worker_pid() { pgrep -P "$(daemon_pid)" -r S,R,D -x rocefs-worker | head -n 1; }
# Kills all processes of the mount, its guard first, which would remove it.
kill_all() { kill -KILL $(pgrep -f "^$ROCEFS .*${1:-$mnt}\$" -r S,R,D | sort -rn); }
# Kills the worker, and waits until the supervisor has another.
kill_worker() {
  local supervisor worker
  supervisor=$(daemon_pid)
  await has_worker "$supervisor"
  worker=$(pgrep -P "$supervisor" -r S,R,D -x rocefs-worker | head -n 1)
  kill -KILL "$worker"
  await replaced "$supervisor" "$worker"
}
# A worker that has just been made has yet to take the name.
has_worker() { pgrep -P "$1" -r S,R,D -x rocefs-worker >/dev/null; }
replaced() {  # SUPERVISOR WORKER
  local child
  for child in $(<"/proc/$1/task/$1/children"); do [ "$child" = "$2" ] || return 0; done
  return 1
}
# True when each of these processes has ended, or only has to be waited for.
all_ended() {
  local pid state
  for pid; do
    state=Z
    { read -r _ _ state _ <"/proc/$pid/stat"; } 2>/dev/null || true
    [ "$state" = Z ] || return 1
  done
}

# ---- Waiting ----
# await COMMAND…: until it succeeds, at most 60 seconds. Nothing ever comes from $silence: reading it sleeps,
# without a process each time.
exec {silence}<> <(:)
await() {
  local end=$((SECONDS + 60))
  until "$@"; do
    [ $SECONDS -lt $end ] || fail "waited in vain for: $*"
    read -rt 0.01 -u "$silence" || true
  done
}
state_is() { [ "$(<"$debug/traffic/$1/state")" = "$2" ]; }  # FLOW STATE

# ---- What a file or a command says ----
value() { awk -v key="$1" '$1 == key {print $2}' "$2"; }  # KEY FILE
# store TEXT FILE: `ok`, or the errno's message of the echo that was refused.
store() {
  local said
  if said=$(LC_ALL=C; { echo "$1" >"$2"; } 2>&1); then echo ok; else echo "${said##*: }"; fi
}
# Output of a command; of an error, the errno's message alone.
quietly() { LC_ALL=C "$@" 2>&1 | sed 's/.*: //'; }
# The exit status of a command, and what it prints.
outcome_of() { local status=0 text; text=$("$@" 2>&1) || status=$?; echo "$status $text"; }
last_dmesg_says() { tail -n 1 "$debug/dmesg" | grep -qF -- "$1" || fail "dmesg does not say '$1': $(tail -n 1 "$debug/dmesg")"; }

# ---- Other users ----
# as_user COMMAND…: as the ordinary user $user. A test that is not root's runs it as who it is.
user=${user:-65534}
as_user() { if $root; then setpriv --reuid="$user" --regid="$user" --clear-groups "$@"; else "$@"; fi; }
# as_mounter COMMAND…: as the user, with a /dev/fuse and a /dev/net/tun that are open to all, as Debian has them, and
# are seen by it alone.
as_mounter() {
  if ! $root; then "$@"; return; fi
  mkdir -p "$dir/devices"
  unshare -m bash -euo pipefail -c 'mount -t tmpfs -o mode=755 devices "$1/devices"
    mknod -m 666 "$1/devices/fuse" c 10 229
    mount --bind "$1/devices/fuse" /dev/fuse
    if [ -e /dev/net/tun ]; then
      mknod -m 666 "$1/devices/tun" c 10 200
      mount --bind "$1/devices/tun" /dev/net/tun
    fi
    user=$2; shift 2; exec setpriv --reuid="$user" --regid="$user" --clear-groups "$@"' sh "$dir" "$user" "$@"
}
needs_mounters() {
  if $root; then unshare -m true 2>/dev/null || skip "no mount namespaces"; fi
  $root || [ -w /dev/fuse ] || skip "/dev/fuse is not open to users"
}
# Lets other users reach $dir.
open_to_users() { chmod 711 "$dir" "$(dirname "$dir")"; }
