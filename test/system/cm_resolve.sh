#!/bin/bash
# rdma_resolve_addr() of addresses that nobody has: within a mount, on a host of it, and behind an uplink whose
# namespace is joined to another by veth.
lib=$(realpath "$(dirname "$0")/lib")
. "$lib/two_mounts.bash"
if [ "${1:-}" != inside ]; then
  command -v rping >/dev/null || { echo "no rping (rdmacm-utils)"; exit 77; }
  has_namespaces setpriv
  exec "${spaces[@]}" "$0" inside
fi

. "$lib/common.bash"
joined_namespaces
# The near namespace has three mounts: one without uplink, one with, and one whose daemon may not change the network.
up=$dir/up bare=$dir/bare
mkdir "$up" "$bare"
ip addr add 10.9.0.3/24 dev near
at_end eval 'fusermount3 -u "$up"; fusermount3 -u "$bare"'
mounted
far_mounted -o uplink=10.9.0.2
"$ROCEFS" -o uplink=10.9.0.1 "$up" >/dev/null
setpriv --inh-caps=-net_admin --bounding-set=-net_admin "$ROCEFS" -o uplink=10.9.0.3 "$bare" >/dev/null
enter=("$ROCEFS" enter -m "$mnt" --)
host=("$ROCEFS" host -m "$mnt" mb_0 --)
outside=("$ROCEFS" enter -m "$up" --)

# rping gives an address 2 s. Prints what it says of it, and puts the milliseconds that it took into $dir/took.
resolve() {  # ADDRESS COMMAND…
  local begun=$(date +%s%3N)
  timeout -k 5 60 "${@:2}" rping -c -a "$1" -C 1 >"$dir/client" 2>&1 || true
  echo $(($(date +%s%3N) - begun)) >"$dir/took"
  grep -m 1 -oE 'ADDR_ERROR, error -?[0-9]+|rdma_resolve_addr: .*|UNREACHABLE' "$dir/client" || cat "$dir/client"
}
timed_out() {  # ADDRESS COMMAND…
  expect "ADDR_ERROR, error -110" "$(resolve "$@")" "$1 by ${*:2}"
  [ "$(cat "$dir/took")" -ge 2000 ] || fail "$1 by ${*:2}: after $(cat "$dir/took") ms"
}
refused() {  # SAID ADDRESS COMMAND…
  expect "$1" "$(resolve "${@:2}")" "$2 by ${*:3}"
}
connects() { grep -hq "remote=$1:.* state=connect" "$debug/cm_ids" "$up/kernel/debug/rocefs/cm_ids"; }
# The address counts as reachable: the id goes on to connect to it.
goes_on() {  # ADDRESS COMMAND…
  timeout -k 5 60 "${@:2}" rping -c -a "$1" -C 1 >"$dir/client" 2>&1 &
  local client=$!
  await connects "$1"
  kill $client
  wait $client || true
}
pings() {  # ADDRESS SERVER CLIENT…: the mount SERVER's rping answers the client, which COMMAND… runs
  local address=$1 server_mount=$2 server
  local where=(remote)
  [ "$server_mount" = "$far" ] || where=(command)
  "${where[@]}" "$ROCEFS" enter -m "$server_mount" -- rping -s -C 3 >"$dir/server" 2>&1 &
  server=$!
  await grep -q state=listen "$server_mount/kernel/debug/rocefs/cm_ids"
  "${@:3}" rping -c -a "$address" -C 3 -v >"$dir/client" 2>&1 || true
  expect 3 "$(grep -c '^ping data' "$dir/client")" "pings"
  wait $server || true
}

test_case "an address of a port's network that nobody has is waited for, others have no route"
timed_out 10.77.0.99 "${enter[@]}"
refused "rdma_resolve_addr: Network is unreachable" 192.0.2.1 "${enter[@]}"
last_dmesg_says "no route to 192.0.2.1:7174"

test_case "on a host its own kernel is asked"
[ -e /dev/net/tun ] || skip "no /dev/net/tun here"
"${host[@]}" true 2>"$dir/why" || skip "no hosts here: $(cat "$dir/why")"
timed_out 10.77.0.99 "${host[@]}"
refused "ADDR_ERROR, error -101" 203.0.113.1 "${host[@]}"
"${host[@]}" ip route add 192.0.2.0/24 via 10.77.0.2
"${host[@]}" ip route add 198.51.100.0/24 via 10.77.0.98
goes_on 192.0.2.1 "${host[@]}"
timed_out 198.51.100.1 "${host[@]}"

test_case "behind an uplink the kernel's neighbours and routes count"
timed_out 10.9.0.99 "${outside[@]}"
refused "ADDR_ERROR, error -101" 203.0.113.1 "${outside[@]}"
ip route add unreachable 203.0.113.7
refused "ADDR_ERROR, error -113" 203.0.113.7 "${outside[@]}"
ip neigh flush dev near
pings 10.9.0.2 "$far" "${outside[@]}"

test_case "behind an uplink a gateway has to answer, not the address"
ip route add 10.8.0.0/24 via 10.9.0.2
ip route add 10.7.0.0/24 via 10.9.0.77
goes_on 10.8.0.5 "${outside[@]}"
timed_out 10.7.0.5 "${outside[@]}"

test_case "a mount without privilege in the network finds neighbours all the same"
timed_out 10.9.0.99 "$ROCEFS" enter -m "$bare" --
ip neigh flush dev near
pings 10.9.0.2 "$far" "$ROCEFS" enter -m "$bare" --

# Without such an uplink a loopback address stands for all devices of the mount.
test_case "mounts whose uplinks have loopback addresses connect by them"
mkdir "$dir/left" "$dir/right"
ip link set lo up
at_end eval 'fusermount3 -u "$dir/left"; fusermount3 -u "$dir/right"'
"$ROCEFS" -o uplink=127.77.0.2 "$dir/left" >/dev/null
"$ROCEFS" -o uplink=127.77.0.3 "$dir/right" >/dev/null
pings 127.77.0.3 "$dir/right" "$ROCEFS" enter -m "$dir/left" --
pings 127.77.0.2 "$dir/left" "$ROCEFS" enter -m "$dir/right" --
pings 127.0.0.1 "$dir/left" "$ROCEFS" enter -m "$dir/left" --
