#!/bin/bash
# `rocefs attach --pid`: the interfaces and the devices of hosts in containers that run, and `rocefs detach`.
. "$(dirname "$0")/lib/common.bash"
needs ip ping ib_write_bw ibv_devices
[ -e /dev/net/tun ] || skip "no /dev/net/tun here"
[[ $ROCEFS_BUILD != */tsan ]] || skip "the thread of ThreadSanitizer is one too many for setns(2)"
needs_provider

# contained NAME: a container; `its NAME COMMAND…` runs in it, without any variable of rocefs.
contained() {
  mkdir -p "$dir/$1"
  unshare $($root || echo -Ur) -mn --propagation private bash "$lib/container.bash" "$dir/$1" >"$dir/$1/said" 2>&1 &
  at_end end_container "$1"
  await eval '[ -e "'"$dir/$1/pid"'" ] || ! kill -0 '$!' 2>/dev/null'
  [ -e "$dir/$1/pid" ] || skip "no containers here: $(cat "$dir/$1/said")"
}
end_container() { [ ! -e "$dir/$1/pid" ] || kill "$(cat "$dir/$1/pid")"; }
pid_of() { cat "$dir/$1/pid"; }
its() {
  local at
  at=$(pid_of "$1")
  env -u ROCEFS_MOUNT -u RDMAV_DRIVERS timeout -k 5 60 nsenter -t "$at" $($root || echo -U --preserve-credentials) -m -n "${@:2}"
}
attach() { "$ROCEFS" attach -m "$mnt" "$@" 2>&1; }
mounts_of() { its "$1" cat /proc/self/mountinfo | wc -l; }
# By TCP, or by the connection manager.
listening() { its "$1" ss -Hltn "sport = :18515" | grep -q . || grep -qi listen "$debug/cm_ids"; }  # NAME
# between SERVER-CONTAINER CLIENT-CONTAINER HOST TOOL…: the client finds the server by the host's name.
between() {
  its "$1" "${@:4}" >"$dir/server" 2>&1 &
  local server=$!
  await listening "$1"
  its "$2" "${@:4}" "$3" >"$dir/client" 2>&1 || fail "${*:4}: $(cat "$dir/client" "$dir/server")"
  wait $server || fail "server of ${*:4}: $(cat "$dir/server")"
}
mounted
contained left
contained right
before=$(mounts_of left)

test_case "programs of two containers find the devices and each other by name"
(umask 077; attach mb_0 --pid "$(pid_of left)") || fail "attach: status $?"
attach mb_1 --pid "$(pid_of right)" || fail "attach: status $?"
expect "attached attached" "$(cat "$debug"/hosts/*/state | xargs)" "states"
expect "mb_0 mb_1" "$(its left ls /sys/class/infiniband) $(its right ls /sys/class/infiniband)" "devices in /sys"
expect "issm1 rdma_cm umad1 uverbs1" "$(its right ls /dev/infiniband | xargs)" "nodes in /dev/infiniband"
expect mb_0 "$(its left ibv_devices | awk 'NR > 2 {print $1}')" "devices that libibverbs opens"
expect 10.77.0.2 "$(its left getent hosts mb_1 | awk '{print $1}')" "address of the other by name"
its left ping -qc 1 mb_1 >/dev/null || fail "no ping"
its left test -c /dev/null || fail "/dev of the container"
expect "755 755 755 644" "$(its left stat -Lc %a /dev/rocefs /dev/infiniband /etc/libibverbs.d /etc/hosts | xargs)" "modes, for all users of the container"
between left right mb_0 ib_write_bw -n 100
between right left mb_1 ib_send_bw -R -n 100

test_case "a worker that is killed loses neither devices nor connections"
kill_worker
its left ping -qc 1 mb_1 >/dev/null || fail "no ping after a worker's death"
between left right mb_0 ib_read_bw -n 100

test_case "a container has one host's devices, and gets them again"
expect "rocefs attach: the container has the devices of host mb_0" "$(attach mb_1 --pid "$(pid_of left)")" "another host"
expect "attached mb_1" "$(cat "$debug/hosts/mb_1/state") $(its right ls /sys/class/infiniband)" "the refused host"
mounts=$(mounts_of left)
attach mb_0 --pid "$(pid_of left)" || fail "the same again: status $?"
expect "$mounts mb_0" "$(mounts_of left) $(its left ls /sys/class/infiniband)" "mounts and devices after the same again"

test_case "detach leaves nothing behind"
"$ROCEFS" detach -m "$mnt" mb_0
expect "$before" "$(mounts_of left)" "mounts of the container"
! its left ls -d /sys/class/infiniband /dev/rocefs /dev/infiniband 2>/dev/null || fail "files stayed"
! its left grep -q mb_1 /etc/hosts || fail "names stayed"
await eval '[ "$(its left ip -br link | wc -l)" = 1 ]'
attach mb_0 --pid "$(pid_of left)" || fail "attached after detach: status $?"
expect mb_0 "$(its left ls /sys/class/infiniband)" "devices of the container"

test_case "a host moves to another container with its devices"
contained third
attach mb_0 --pid "$(pid_of third)" || fail "moved: status $?"
expect mb_0 "$(its third ls /sys/class/infiniband)" "devices of the new container"
! its left ls -d /sys/class/infiniband 2>/dev/null || fail "devices stayed in the old container"

test_case "a host goes into a network namespace that is mounted on a file, as ip-netns(8) does"
needs_root
touch "$dir/blue" "$dir/other"
mount --bind "/proc/$(pid_of left)/ns/net" "$dir/blue"
at_end umount -l "$dir/blue"
mount --bind "/proc/$(pid_of left)/ns/uts" "$dir/other"
at_end umount -l "$dir/other"
expect "rocefs attach: host mb_1 is in that network namespace" "$("$ROCEFS" attach -m "$mnt" mb_1 --pid "$(pid_of left)" &&
  attach mb_0 --netns "$dir/blue")" "a namespace that has a host, by its other name"
attach mb_1 --pid "$(pid_of right)" || fail "back: status $?"
attach mb_0 --netns "$dir/blue" || fail "attach: status $?"
its left ping -qc 1 10.77.0.2 >/dev/null || fail "no ping"
expect "rocefs attach: $dir/other is no network namespace" "$(attach mb_0 --netns "$dir/other")" "another kind"

test_case "where devices cannot be shown, interfaces come and the reason is said"
unshare $($root || echo -Ur) -n sleep 86471 &
await pgrep -f '^sleep 86471$'
at_end pkill -f '^sleep 86471$'
expect "rocefs attach: interfaces only, no devices in /sys of that process: its files are this machine's; \`rocefs host mb_0\` runs programs with the devices" \
  "$(attach mb_0 --pid "$(pgrep -f '^sleep 86471$')")" "a process with the machine's files"
expect attached "$(cat "$debug/hosts/mb_0/state")" "state"
unshare $($root || echo -Ur) -mn sleep 86472 &
await pgrep -f '^sleep 86472$'
at_end pkill -f '^sleep 86472$'
[[ $(attach mb_0 --pid "$(pgrep -f '^sleep 86472$')") == *"its /dev is no file system of its own"* ]] || fail "a /dev of the machine"
expect "rocefs attach: there is no process 4194304" "$(attach mb_0 --pid 4194304)" "no process"

test_case "an ordinary user attaches hosts to containers of his own"
needs_user_namespaces
needs_mounters
needs_setuid_fusermount
open_to_users
"$ROCEFS" detach -m "$mnt" mb_1  # else the container would keep the file system
unmounted
mkdir -p "$dir/own/bin" "$dir/own/mnt" "$dir/own/box"
install -m 755 "$ROCEFS" "$dir/own/bin"
cp -r "$(dirname "$ROCEFS")/../lib" "$dir/own/lib"
install -m 755 "$lib/container.bash" "$dir/own"
chmod -R a+rX "$dir/own"
! $root || chown -R "$user:$user" "$dir/own"
as_mounter bash -euc 'cd "$1"
  export PATH=$PATH:$1/bin:/usr/sbin ROCEFS_MOUNT=$1/mnt
  rocefs "$1/mnt" >/dev/null
  unshare -Urmn --propagation private bash "$1/container.bash" "$1/box" >"$1/said" 2>&1 &
  container=$!  # a process substitution takes $!
  until [ -e "$1/box/pid" ]; do kill -0 $container || { cat "$1/said"; exit 1; }; read -rt 0.05 <> <(:) || true; done
  box=$(cat "$1/box/pid")
  trap "kill $box; fusermount3 -u $1/mnt" EXIT
  rocefs attach mb_0 --pid "$box"
  rocefs host mb_1 ping -qc 1 mb_0 | grep -o "1 received"
  unset ROCEFS_MOUNT
  its() { nsenter -t "$box" -U --preserve-credentials -m -n "$@"; }
  its ibv_devices | awk "NR > 2 {print \$1}"
  its ping -qc 1 mb_1 | grep -o "1 received"
  rocefs detach -m "$1/mnt" mb_0
  its ls /sys/class/infiniband 2>/dev/null || echo gone' bash "$dir/own" >"$dir/said" 2>&1 || fail "$(cat "$dir/said")"
expect "1 received mb_0 1 received gone" "$(xargs <"$dir/said")" "an ordinary user"
