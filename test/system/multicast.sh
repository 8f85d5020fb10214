#!/bin/bash
# Multicast groups between two mounts in two network namespaces that veth joins: mckey both ways, memberships of the
# kernel (IGMP, MLD), and packets that have to stay inside.
lib=$(realpath "$(dirname "$0")/lib")
. "$lib/two_mounts.bash"
if [ "${1:-}" != inside ]; then
  command -v mckey >/dev/null || { echo "no mckey (rdmacm-utils)"; exit 77; }
  has_namespaces
  exec "${spaces[@]}" "$0" inside
fi

. "$lib/common.bash"
joined_namespaces
here() { "$@"; }
enters() {  # here|remote COMMAND…
  local at=$near_mount
  [ "$1" = here ] || at=$far_mount
  "$1" timeout -k 5 60 "$ROCEFS" enter -m "$at" -- "${@:2}"
}
member() { "$1" ip maddr show dev "$2" | grep -qw "$3"; }  # here|remote INTERFACE GROUP
no_member() { ! member "$@"; }
interface() { [ "$1" = here ] && echo near || echo far; }
counter() { cat "$1/kernel/debug/rocefs/uplinks/uplink/$2"; }
port() { cat "$1/class/infiniband/mb_0/ports/1/counters/$2"; }
# A receiver of five datagrams, which the kernel knows to be a member: $receiver, whose program has the PID in $dir/pid.
receive() {  # here|remote GROUP ADDRESS
  enters "$1" sh -c 'echo $$ >"$0"; exec mckey "$@"' "$dir/pid" -m "$2" -b "$3" -C 5 >"$dir/receiver" 2>&1 &
  receiver=$!
  await member "$1" "$(interface "$1")" "$2"
}
send() {  # here|remote GROUP ADDRESS
  enters "$1" mckey -m "$2" -b "$3" -C 5 -s >"$dir/sender" 2>&1 || fail "the sender: $(cat "$dir/sender")"
}
killed() {  # RECEIVER PID
  kill -KILL "$2"
  wait "$1" || true
}
received() {  # here|remote GROUP
  wait $receiver || fail "the receiver: $(cat "$dir/receiver")"
  await no_member "$1" "$(interface "$1")" "$2"
}
group=239.1.2.3
# Two mounts more for IPv6, in the same namespaces.
ip addr add fd00:9::1/64 dev near nodad
remote ip addr add fd00:9::2/64 dev far nodad
near_mount=$mnt far_mount=$far near6=$dir/near6 far6=$dir/far6
mkdir "$near6" "$far6"
at_end eval 'fusermount3 -u "$near6"; fusermount3 -u "$far6"'
mounted -o uplink=10.9.0.1
far_mounted -o uplink=10.9.0.2
"$ROCEFS" -o uplink=fd00:9::1 "$near6" >/dev/null
remote "$ROCEFS" -o uplink=fd00:9::2 "$far6" >/dev/null

test_case "datagrams to a group leave by the uplink and come to the members behind another"
receive remote $group 10.9.0.2
send here $group 10.9.0.1
received remote $group
expect "5 5" "$(counter "$mnt" tx_packets) $(counter "$far" rx_packets)" "packets sent and received"
expect 00 "$(counter "$far" rx_malformed)$(counter "$far" rx_damaged)" "bad packets"

test_case "the other way"
receive here $group 10.9.0.1
send remote $group 10.9.0.2
received here $group

test_case "the sender's own members get each datagram once, not again from the kernel"
receive here $group 10.9.0.1
before=$(counter "$mnt" rx_packets) wire=$(port "$mnt" multicast_rcv_packets)
send here $group 10.9.0.1
received here $group
expect "$before $wire" "$(counter "$mnt" rx_packets) $(port "$mnt" multicast_rcv_packets)" "packets that came back"

test_case "a port whose address is not the machine's reaches members inside alone"
receive remote $group 10.9.0.2
before=$(counter "$mnt" tx_packets)
send here $group 10.77.0.2
expect "$before 0" "$(counter "$mnt" tx_packets) $(counter "$mnt" tx_no_socket)" "packets sent, refused"
send here $group 10.9.0.1
received remote $group

test_case "a killed program's groups are left"
receive here $group 10.9.0.1
killed $receiver "$(cat "$dir/pid")"
await no_member here near $group

test_case "a group that is left takes no other with it"
receive here $group 10.9.0.1
first=$receiver pid=$(cat "$dir/pid")
receive here 239.1.2.4 10.9.0.1
killed $receiver "$(cat "$dir/pid")"
await no_member here near 239.1.2.4
member here near $group || fail "the other group is left too"
killed $first "$pid"
await no_member here near $group

test_case "IPv6 groups cross too"
near_mount=$near6 far_mount=$far6
receive remote ff0e::9:1 fd00:9::2
send here ff0e::9:1 fd00:9::1
received remote ff0e::9:1
receive here ff0e::9:1 fd00:9::1
send remote ff0e::9:1 fd00:9::2
received here ff0e::9:1

test_case "a change of the interface does not lose the group"
near_mount=$mnt far_mount=$far
receive here $group 10.9.0.1
ip link set near down
ip link set near up
ip addr replace 10.9.0.1/24 dev near
await grep -q ACTIVE "$ib/mb_0/ports/1/state"
remote ping -qc 1 -w 20 10.9.0.1 >/dev/null || true
send remote $group 10.9.0.2
received here $group
