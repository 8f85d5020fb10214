#!/bin/bash
# Files that a store names are opened with the rights of who opened the descriptor, read from the daemon's own /proc
# while that process waits; also if clock/at keeps the store until the writer has ended.
. "$(dirname "$0")/lib/common.bash"
needs_root "a writer of another user needs root here"
needs_user_namespaces
PATH=/usr/sbin:/usr/bin:/sbin:/bin  # which another user may run
if [ "${1:-}" != inside ]; then
  open_to_users
  mkdir "$dir/his" "$dir/mine"
  chown 65534:65534 "$dir/his"
  head -c 10000 /dev/urandom >"$dir/mine/secret"
  chown 0:4242 "$dir/mine/secret"
  chmod 640 "$dir/mine/secret"
  cp "$dir/mine/secret" "$dir/his/own"
  chmod 644 "$dir/his/own"
  # A pid namespace with its own /proc, so that a pid can be given twice.
  exec unshare --pid --fork --mount-proc --kill-child "$0" inside
fi
open_to_all() { chmod 666 "$debug/traffic/start" "$debug/clock/at" "$debug/pcap"; }
refused() {  # WHAT COMMAND…
  local said
  if said=$("${@:2}" 2>&1); then fail "$1: accepted"; fi
  [[ $said == *"Permission denied"* ]] || fail "$1: $said"
}
steal="echo 'g write mb_0 mb_1 file=$dir/mine/secret out=$dir/his/stolen' >$debug/traffic/start"
kept() { echo "$1 kernel/debug/rocefs/traffic/start='$2'"; }
store_as_user() {  # LINE: prints the number of the process that stored it, which has ended
  as_user bash -c 'cd "$2/his"; echo "$1" >"$3/clock/at"; echo $$' store "$1" "$dir" "$debug"
}
await_end() { echo idle >"$debug/clock/advance"; }
mounted -o allow_other
open_to_all

test_case "a user's own file is read and written with his identity"
as_user sh -c "cd $dir/his; echo f write mb_0 mb_1 file=own out=copy >$debug/traffic/start"
await state_is f "done"
expect "65534:65534 644" "$(stat -c '%u:%g %a' "$dir/his/copy")" "whose file it is"
cmp "$dir/his/own" "$dir/his/copy"

test_case "another user's file is refused, unless a group permits it"
refused "another's file" as_user bash -c "$steal"
setpriv --reuid=65534 --regid=65534 --groups 4242 bash -c "${steal//stolen/lent}"
await state_is g "done"
echo 1 >"$debug/traffic/g/stop"

test_case "a /proc of the user's own making permits no group"
refused "a false /proc" as_user unshare -Urm bash -c "mount -t tmpfs none /proc; mkdir /proc/\$\$
  printf 'Name:\tx\nUid:\t65534\t65534\t65534\t65534\nGid:\t65534\t65534\t65534\t65534\nGroups:\t4242\n' >/proc/\$\$/status
  ln -s / /proc/\$\$/root; ln -s $dir/his /proc/\$\$/cwd; $steal"
[ ! -e "$dir/his/stolen" ] || fail "a false /proc: the secret was copied"

test_case "a root without capabilities is refused"
refused "root without capabilities" setpriv --bounding-set=-all --inh-caps=-all bash -c "
  echo h write mb_0 mb_1 file=$dir/his/own out=$dir/his/other >$debug/traffic/start"

test_case "a thread's store has its writer's identity, too"
as_user python3 - "$debug/traffic/start" "$dir/his" <<'THREAD'
import os, sys, threading
os.chdir(sys.argv[2])
def store():
    with open(sys.argv[1], "w") as start:
        start.write("t write mb_0 mb_1 file=own out=thread\n")
thread = threading.Thread(target=store)
thread.start()
thread.join()
THREAD
await state_is t "done"

# Opens as one user and writes as another. PAUSE, if any, comes between.
through() {  # OPENER WRITER FILE TEXT [PAUSE]
  python3 - "$@" <<'THROUGH'
import os, subprocess, sys
opener, writer, path, text = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
def become(user):
    os.seteuid(0)
    os.setegid(user)
    os.seteuid(user)
os.setgroups([])
become(opener)
mode = os.O_RDWR if path.endswith('/get') else os.O_WRONLY
descriptor = os.open(path, mode)
become(0)
if sys.argv[5:]:
    subprocess.run(['bash', '-c', sys.argv[5]], check=True)
become(writer)
try:
    os.write(descriptor, text.encode())
except OSError as e:
    sys.exit(f'{e.strerror}')
THROUGH
}
capture_of() {  # PATH: ends the capture, and prints whose its file is
  echo off >"$debug/pcap"
  stat -c %u "$1"
}
loss=kernel/debug/rocefs/links/mb_0-sw_0/loss

test_case "a descriptor that a user opened lends him no right of root who writes to it"
mkdir "$dir/mine/plugins"
chmod 700 "$dir/mine"
chmod 666 "$ib/mb_0/pcc/plugin_dir"
refused "a capture" through 65534 0 "$debug/pcap" "$dir/mine/x.pcap"
[ ! -e "$dir/mine/x.pcap" ] || fail "root's directory has a capture"
refused "a flow" through 65534 0 "$debug/traffic/start" "u write mb_0 mb_1 file=$dir/mine/secret out=$dir/his/stolen"
refused "a directory of plugins" through 65534 0 "$ib/mb_0/pcc/plugin_dir" "$dir/mine/plugins"
refused "a knob by set" through 65534 0 "$debug/set" "$loss=0.5"
chmod 600 "$mnt/$loss"
refused "a query" through 65534 0 "$debug/get" "$loss"
through 65534 0 "$debug/pcap" "$dir/his/x.pcap"
expect 65534 "$(capture_of "$dir/his/x.pcap")" "whose capture it is"

test_case "a descriptor that root opened has root's rights whoever writes to it"
through 0 65534 "$debug/pcap" "$dir/mine/y.pcap"
expect 0 "$(capture_of "$dir/mine/y.pcap")" "whose capture it is"
through 0 65534 "$debug/set" "$loss=0.25"
expect 0.25 "$(<"$mnt/$loss")" "the knob"
through 0 65534 "$debug/get" "$loss"
echo 0 >"$mnt/$loss"

test_case "a descriptor from another root directory names no file for a writer with other rights"
said=$(python3 - "$debug/pcap" "$dir/his" <<'ELSEWHERE'
import os, sys
descriptor = os.open(sys.argv[1], os.O_WRONLY)
os.chroot(sys.argv[2])
os.setuid(65534)
try:
    os.write(descriptor, b'/inside.pcap')
except OSError as e:
    print(e.strerror)
ELSEWHERE
)
expect "Operation not permitted" "$said" "a store after chroot(2)"
(
  exec 3>"$debug/pcap"
  unshare --mount sh -c "echo $dir/mine/z.pcap >&3"
)
expect 0 "$(capture_of "$dir/mine/z.pcap")" "the same user's capture, from another mount namespace"

test_case "after a takeover only the opener itself uses its descriptor for files"
if said=$(through 65534 0 "$debug/pcap" "$dir/his/late.pcap" "kill -9 $(worker_pid)" 2>&1); then fail "accepted"; fi
expect "No such process" "$said" "another user's store"
grep -q "pcap: .*who opened the file has died: open it again (ESRCH)" "$debug/dmesg" || fail "$(tail -2 "$debug/dmesg")"
through 65534 65534 "$debug/pcap" "$dir/his/kept.pcap" "kill -9 $(worker_pid)"
expect 65534 "$(capture_of "$dir/his/kept.pcap")" "whose capture it is"

test_case "clock/at keeps the identity of the writer"
mounted -o allow_other,clock=virtual
open_to_all
store_as_user "$(kept 1ms 'f write mb_0 mb_1 file=own out=later')" >/dev/null
await_end
expect "done" "$(cat "$debug/traffic/f/state")" "a relative path, when its writer has gone"
cmp "$dir/his/own" "$dir/his/later"

test_case "clock/at keeps the rights of who opened it"
through 65534 0 "$debug/clock/at" "$(kept 1ms "s write mb_0 mb_1 file=$dir/mine/secret out=$dir/his/stolen")"
await_end
[ ! -e "$dir/his/stolen" ] || fail "a store that root wrote for a user"

test_case "a process with the writer's former pid lends it no group"
has_number() {  # starts a process of root's with group 4242 that has it
  echo $(($1 - 1)) >/proc/sys/kernel/ns_last_pid
  setpriv --groups 4242 sleep 1000 &
  [ $! = "$1" ] || { kill $!; wait $! 2>/dev/null; false; }
}
number=$(store_as_user "$(kept 1ms "g write mb_0 mb_1 file=$dir/mine/secret out=stolen")")
await has_number "$number"
await_end
[ ! -e "$dir/his/stolen" ] || fail "the group of whoever has the writer's number now"
grep -q "clock/at: .*Permission denied (EACCES)" "$debug/dmesg" || fail "no word of it: $(cat "$debug/dmesg")"
kill %1

test_case "a successor does not know the writer"
store_as_user "$(kept 1ms 'h write mb_0 mb_1 file=own out=lost')" >/dev/null
kill_worker
await_end
grep -q "clock/at: .*unknown to a worker that took over (ESRCH)" "$debug/dmesg" || fail "after a takeover"
[ ! -e "$dir/his/lost" ] || fail "after a takeover"
unmounted
