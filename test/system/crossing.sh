#!/bin/bash
# The topology of tools/containers/compose.yaml without an engine: two network and mount namespaces on
# one wire, a rocefs with an uplink in each, under the containers' seccomp profile; `crossing` sends
# messages between them.
. "$(dirname "$0")/lib/common.bash"
here=$(realpath "$(dirname "$0")/../../tools/containers")
"$ROCEFS" --help | grep -q uplink= || skip "this rocefs has no uplink"
needs_root "network namespaces with a veth need root here"
unshare -n -m true 2>/dev/null || skip "no network namespaces"
needs ip nsenter ibv_rc_pingpong python3 "${CC:-cc}"
needs_provider

export PATH=$(dirname "$ROCEFS"):$PATH
declare -A container
clean() { for pid in "${container[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done; }
at_end clean
for name in left right; do  # its first process is the last one to go: the namespaces end with it
  mkdir "$dir/$name"
  unshare -n -m --pid --fork --kill-child --mount-proc sleep 1000 2>/dev/null &
  outer=$!
  await pgrep -P $outer >/dev/null
  container[$name]=$(pgrep -P $outer)
done
inside() { nsenter -t "${container[$1]}" -n -m -p "${@:2}"; }
apart() { [ "$(readlink "/proc/${container[$1]}/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }
await apart left
await apart right
ip link add wire0 netns "${container[left]}" type veth peer name wire0 netns "${container[right]}" 2>/dev/null ||
  skip "no veth here"
address=172.31.47.2
for name in left right; do
  inside $name ip link set lo up
  inside $name ip address add $address/24 dev wire0
  inside $name ip link set wire0 up
  inside $name python3 "$lib/seccomp.py" profile "$here/seccomp.json" CAP_SYS_ADMIN,CAP_SYS_CHROOT \
    "$ROCEFS" -o uplink=$address "$dir/$name" >"$dir/said" 2>&1 || fail "$name: $(cat "$dir/said")"
  address=172.31.47.3
done
run() { echo "nsenter -t ${container[$1]} -n -m -p env ROCEFS_MOUNT=$dir/$1"; }

test_case "messages pass between two containers"
"$here/crossing" "$(run left)" "$(run right)" 172.31.47.2

test_case "a successor takes over the address of a dead worker"
worker=$(pgrep -P "$(pgrep -of "^$ROCEFS -o uplink=172.31.47.2 " -r S,R,D)" -r S,R,D -x rocefs-worker)
kill -KILL "$worker"
"$here/crossing" "$(run left)" "$(run right)" 172.31.47.2
grep -q "worker .* died of SIGKILL" "$(echo /proc/"${container[left]}"/root/"$dir"/left/kernel/debug/rocefs/dmesg)" ||
  fail "no takeover on the left"
for name in left right; do inside $name umount "$dir/$name"; done
