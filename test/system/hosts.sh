#!/bin/bash
# `rocefs host`: commands on the machines around the NICs, and what these machines share: names,
# TCP over the emulated cables, and one NIC seen from two sides.
. "$(dirname "$0")/lib/common.bash"
needs ip ping python3
[ -e /dev/net/tun ] || skip "no /dev/net/tun here"
[[ $ROCEFS_BUILD != */tsan ]] || skip "the thread of ThreadSanitizer is one too many for setns(2)"

on() { timeout -k 5 60 "$ROCEFS" host -m "$mnt" "$@"; }  # HOST COMMAND…
state() { cat "$debug/hosts/$1/state"; }
gids() { cat "$ib/$1"/ports/1/gids/* | grep -v '^0000:0000:0000:0000:0000:0000:0000:0000$' | sort | tr '\n' ' '; }
is() { [ "$("${@:2}" 2>&1)" = "$1" ]; }  # TEXT COMMAND…: the command prints it
mapped() { printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' ${1//./ }; }  # IPv4 address as a GID
listens_on() { on "$1" "ss -Hltn 'sport = :$2'" | grep -q .; }  # HOST PORT
tcp() {  # SECONDS: from mb_0 to mb_1, which says what it was in $dir/tcp
  on mb_1 iperf3 -s -1 >"$dir/iperf3" 2>&1 &
  await listens_on mb_1 5201
  on mb_0 iperf3 -J -c mb_1 -t "$1" >"$dir/tcp" || fail "$(cat "$dir/tcp")"
}
mounted
near=$(ls "$ib/mb_0/device/net") far=$(ls "$ib/mb_1/device/net")
expect "off off" "$(state mb_0) $(state mb_1)" "before the first command"
expect "" "$(cat "$debug"/hosts/mb_0/{namespace,processes})" "namespace and processes before"
on mb_0 true 2>"$dir/why" || skip "no hosts here: $(cat "$dir/why")"

test_case "the first command makes all hosts, and each has its own NIC alone"
expect "running running" "$(state mb_0) $(state mb_1)" "after the first command"
expect mb_0 "$(on mb_0 hostname)" "name of the host"
expect "mb_1 mb_1" "$(on mb_1 'echo $(ls /sys/class/infiniband) $(hostname)')" "RDMA devices in /sys, and the name"
expect "$near lo" "$(on mb_0 'echo $(ls /sys/class/net | grep -v mango)')" "interfaces in /sys"
expect "issm1 rdma_cm umad1 uverbs1" "$(on mb_1 'echo $(ls /dev/infiniband)')" "nodes in /dev/infiniband"
expect "$(basename "$(realpath "$ib/mb_1/device")")" "$(on mb_1 ls /sys/bus/pci/drivers/mango_core '|' grep :)" "functions of the driver"
link() { on mb_0 -- ip -br link show dev "$near" | awk '{print $1, $2, $3}'; }
await is "$near UP 02:00:4c:6d:62:01" link  # the kernel follows the carrier a little later
expect "mtu 4192 qlen 128" "$(on mb_0 -- ip link show dev "$near" | awk 'NR == 1 {print $4, $5, $(NF-1), $NF}')" "MTU and queue"
expect 10.77.0.2 "$(on mb_0 'getent hosts mb_1' | awk '{print $1}')" "address of the other host by its name"
expect "lo UNKNOWN 127.0.0.1/8" "$(on mb_0 -- ip -br -4 addr show dev lo | awk '{print $1, $2, $3}')" "loopback"

test_case "a host's files show its network namespace, and the processes in it"
expect "$(on mb_0 readlink /proc/self/ns/net)" "$(cat "$debug/hosts/mb_0/namespace")" "namespace"
on mb_0 -- sleep 60 &
command=$!
sleeper() {  # the pid among those of mb_0
  local pid
  for pid in $(cat "$debug/hosts/mb_0/processes"); do
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != sleep ] || { echo "$pid"; return; }
  done
  return 1
}
await sleeper >/dev/null
pid=$(sleeper)
expect "$(cat "$debug/hosts/mb_0/namespace")" "$(readlink "/proc/$pid/ns/net")" "namespace of a process"
expect "" "$(grep -x "$pid" "$debug/hosts/mb_1/processes")" "the process on the other host"
kill "$pid"
wait $command || true
! sleeper || fail "a process that has ended is shown"

test_case "a command is called as ssh calls it, and its end is the caller's"
expect "a b  c" "$(on mb_0 echo a 'b\ \ c' | sed 's/\\//g')" "words are the shell's"
expect "a b  c" "$(on mb_0 -- echo a 'b  c')" "arguments behind -- are the command's"
expect 2 "$(echo 'echo $((1+1))' | SHELL=/bin/sh on mb_0)" "a shell without a command"
expect "$PWD" "$(on mb_0 pwd)" "working directory"
mkdir "$dir/deleted"
expect "0 links" "$(cd "$dir/deleted"; rmdir "$dir/deleted"; on mb_0 -- stat -Lc "%h links" .)" "a directory that is deleted"
expect "7 " "$(outcome_of on mb_0 exit 7)" "exit status"
expect 143 "$(on mb_0 -- sh -c 'kill $$' >/dev/null 2>&1; echo $?)" "a command that a signal ends"
expect "127 rocefs host: nosuch: No such file or directory" "$(outcome_of on mb_0 -- nosuch)" "a command that is not there"
expect "126 rocefs host: /etc/passwd: Permission denied" "$(outcome_of on mb_0 -- /etc/passwd)" "a file that is no program"
expect 0 "$(tar -C /etc -cf - passwd | on mb_1 tar -C "$dir" -xf -; cmp /etc/passwd "$dir/passwd"; echo $?)" "a pipe into a host"

test_case "a command runs in the caller's directory, also where a host does not see it"
needs_root "only root mounts"
mkdir -p "$dir/late/sub"
mount -t tmpfs none "$dir/late"
at_end umount "$dir/late"
mkdir "$dir/late/sub"
echo here | tee "$dir/late/mark" >"$dir/late/sub/mark"
for directory in late late/sub; do
  expect "here $dir/$directory" "$(cd "$dir/$directory" && on mb_0 'cat mark; pwd' | xargs)" "in $directory"
done
expect "$near lo /sys/class/net" "$(cd /sys/class/net && on mb_0 'ls | grep -v mango; pwd' | xargs)" "in a directory that the host has of its own"

test_case "what cannot be is refused with the reason"
expect "125 rocefs host: there is no host mb_7 in $mnt; hosts: mb_0 mb_1" "$(outcome_of on mb_7 true)" "a host that is not there"
expect "2 rocefs host: a host is wanted" "$(outcome_of "$ROCEFS" host | head -n 1)" "no host"
expect "2 rocefs host: unknown option -x" "$(outcome_of "$ROCEFS" host -x | head -n 1)" "an unknown option"
expect "2 rocefs host: a command is wanted behind --" "$(outcome_of on mb_0 -- | head -n 1)" "no command"

test_case "packets between hosts take the cables, where they are counted, captured and lost"
sent() { cat "$mnt/class/net/$near/statistics/tx_packets"; }
echo "$dir/ping.pcap" >"$debug/pcap"
before=$(sent)
on mb_0 ping -qc 5 -i 0.01 mb_1 >"$dir/ping" || fail "$(cat "$dir/ping")"
[ $(($(sent) - before)) -ge 5 ] || fail "$(($(sent) - before)) packets counted of 5 pings"
echo off >"$debug/pcap"
await grep -qx off "$debug/pcap"
if command -v tshark >/dev/null; then
  expect 5 "$(tshark -r "$dir/ping.pcap" -Y 'icmp.type == 8' 2>/dev/null | wc -l)" "echo requests in the capture"
fi
echo "lost drop mb_0-sw_0 count=1000" >"$debug/inject/add"
expect "5 packets transmitted, 0 received, 100% packet loss" "$(on mb_0 ping -qc 5 -i 0.01 -W 1 mb_1 | grep -o '.*loss')" "pings into a lossy cable"
[ "$(cat "$debug/inject/lost/fired")" -ge 5 ] || fail "the loss fired $(cat "$debug/inject/lost/fired") times"
echo 1 >"$debug/inject/lost/remove"
on mb_0 ping -qc 1 mb_1 >/dev/null || fail "no ping after the loss"

test_case "the link's delay and rate hold for packets of the hosts"
# The echo request passes this direction of the cable, the reply does not: the shortest round trip is 20 ms, and
# less than twice that unless the delay counts twice.
echo 20ms >"$debug/links/mb_0-sw_0/delay"
rtt=$(on mb_0 ping -qc 3 -i 0.05 mb_1 | awk -F'[/= ]+' '/^rtt/ {print int($6)}')
echo 1us >"$debug/links/mb_0-sw_0/delay"
[ "$rtt" -ge 20 ] && [ "$rtt" -lt 40 ] || fail "a ping over 20 ms of cable took $rtt ms"

test_case "TCP runs between hosts, at the rate of the slowest cable"
needs iperf3
echo 1000000000 >"$debug/links/mb_0-sw_0/rate"
tcp 2
rate=$(python3 -c 'import json, sys; print(int(json.load(open(sys.argv[1]))["end"]["sum_received"]["bits_per_second"] / 1e6))' "$dir/tcp")
# Payload is 97.5 % of the octets on the cable; a busy machine may be slower than 1 Gb/s.
[ "$rate" -gt 100 ] && [ "$rate" -lt 990 ] || fail "$rate Mb/s over a link of 1 Gb/s"

test_case "PAUSE and loss reach TCP"
needs iperf3
far_switch=$debug/fabric/sw_0
paused() { cat "$far_switch"/ports/1/pfc/0/pause_sent; }
overflowed() { cat "$debug"/links/*/overflowed | awk '{sum += $1} END {print sum}'; }
retransmitted() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["end"]["sum_sent"]["retransmits"])' "$dir/tcp"; }
expect 0 "$(paused)" "PAUSE before"
# The cable of the receiver is the bottleneck, and the switch takes 20,000 octets of the sender.
echo 100M >"$debug/links/sw_0-mb_1/rate"
echo 20000 >"$far_switch/pfc/threshold"
echo static >"$far_switch/pfc/mode"
tcp 1
[ "$(paused)" -gt 10 ] || fail "PAUSE $(paused) times"
[ "$(cat "$ib/mb_0/ports/1/counters/port_xmit_wait")" -gt 0 ] || fail "the port never waited"
expect "0 0" "$(overflowed) $(retransmitted)" "packets dropped, segments sent again under PAUSE"
echo dynamic >"$far_switch/pfc/mode"
echo 100G >"$debug/links/sw_0-mb_1/rate"
echo 0.01 >"$debug/links/mb_0-sw_0/loss"
tcp 1
[ "$(cat "$debug/links/mb_0-sw_0/lost")" -gt 0 ] && [ "$(retransmitted)" -gt 0 ] || fail "lost $(cat "$debug/links/mb_0-sw_0/lost"), sent again $(retransmitted)"
echo 0 >"$debug/links/mb_0-sw_0/loss"

test_case "a worker's death costs no interface and no TCP connection"
needs iperf3
tcp 3 &
connection=$!
await eval "on mb_1 \"ss -Htn 'sport = :5201'\" | grep -q ESTAB"
kill_worker
wait "$connection" || fail "the connection broke: $(cat "$dir/tcp")"
on mb_1 ping -qc 2 -i 0.01 mb_0 >/dev/null || fail "no ping after the takeover"

test_case "stock RDMA programs connect by a host's name"
needs ib_write_bw ibv_rc_pingpong rping
needs_provider
serve() {  # PORT COMMAND…: on mb_1
  on mb_1 "${*:2}" >"$dir/server" 2>&1 &
  server=$!
  await listens_on mb_1 "$1"
}
serve 18515 ib_write_bw -n 500
on mb_0 ib_write_bw -n 500 mb_1 >"$dir/client" || fail "$(cat "$dir/client" "$dir/server")"
grep -qE '^ 65536 +500 ' "$dir/client" || fail "$(cat "$dir/client")"
wait "$server"
on mb_1 ib_write_bw -R -n 500 >"$dir/server" 2>&1 &
await grep -qi listen "$debug/cm_ids"
on mb_0 ib_write_bw -R -n 500 mb_1 >"$dir/client" || fail "$(cat "$dir/client" "$dir/server")"
wait $!
serve 18515 ibv_rc_pingpong -g 1 -n 100
on mb_0 ibv_rc_pingpong -g 1 -n 100 mb_1 >"$dir/client" || fail "$(cat "$dir/client" "$dir/server")"
wait "$server"
on mb_1 rping -s -C 3 >"$dir/server" 2>&1 &
await grep -qi listen "$debug/cm_ids"
on mb_0 rping -c -a mb_1 -C 3 >"$dir/client" 2>&1 || fail "$(cat "$dir/client" "$dir/server")"

test_case "datagrams to a multicast group that a program has joined come to it"
needs mckey stdbuf
needs_provider
on mb_1 stdbuf -oL mckey -m 239.1.2.3 -b 10.77.0.2 -C 5 >"$dir/server" 2>&1 &
await grep -q "receiving data" "$dir/server"
on mb_0 mckey -m 239.1.2.3 -b 10.77.0.1 -C 5 -s >"$dir/client" 2>&1 || fail "$(cat "$dir/client" "$dir/server")"
wait $! || fail "the member: $(cat "$dir/server")"
grep -q "data transfers complete" "$dir/server" || fail "the member: $(cat "$dir/server")"

test_case "addresses of the interface are the port's GIDs"
plain=$(gids mb_0)
await is "$plain" gids mb_0
on mb_0 -- ip addr add 10.78.1.9/24 dev "$near"
has_gid() { [[ $(gids "$1") == *"$2"* ]]; }
await has_gid mb_0 "$(mapped 10.78.1.9)"
for index in "$ib/mb_0/ports/1/gids"/*; do
  [ "$(cat "$index")" = "$(mapped 10.78.1.9)" ] || continue
  expect "RoCE v2 $near" "$(cat "$ib/mb_0/ports/1/gid_attrs/types/${index##*/}" "$ib/mb_0/ports/1/gid_attrs/ndevs/${index##*/}" | xargs)" "attributes of the new GID"
done
on mb_0 -- ip addr del 10.78.1.9/24 dev "$near"
await is "$plain" gids mb_0

test_case "addresses beyond the GID table are said in dmesg, once"
on mb_0 "for i in \$(seq 20); do ip addr add 10.79.0.\$i/24 dev $near; done"
beyond() { grep -c "mb_0: 10.79.0.[0-9]* is no GID: its table has 16 entries" "$debug/dmesg"; }
await eval '[ "$(beyond)" -ge 6 ]'
on mb_0 -- ip addr del 10.79.0.20/24 dev "$near"
await eval '! on mb_0 -- ip addr show dev "$near" | grep -q 10.79.0.20/'
expect "" "$(grep -o "10.79.0.[0-9]* is no GID" "$debug/dmesg" | sort | uniq -d)" "lines that are said twice"
on mb_0 -- ip addr flush dev "$near" to 10.79.0.0/24
await is "$plain" gids mb_0

test_case "an interface that leaves a bridge keeps its GIDs"
if on mb_0 -- ip link add br0 type bridge 2>/dev/null; then
  before=$(gids mb_0)
  on mb_0 "ip link set $near master br0; ip link set $near nomaster; ip link del br0"
  on mb_0 -- ip addr add 10.78.1.10/24 dev "$near"  # a later change, for which the test can wait
  await has_gid mb_0 "$(mapped 10.78.1.10)"
  on mb_0 -- ip addr del 10.78.1.10/24 dev "$near"
  await is "$before" gids mb_0
fi

test_case "an interface that is down takes the port down, and a dead cable the carrier"
port_state() { cat "$ib/$1/ports/1/state"; }
on mb_0 -- ip link set "$near" down
await is "1: DOWN" port_state mb_0
on mb_0 -- ip link set "$near" up
await is "4: ACTIVE" port_state mb_0
carrier() { on mb_0 -- ip -br link show dev "$near" | awk '{print $2}'; }
echo down >"$debug/links/mb_0-sw_0/state"
await is DOWN carrier
echo up >"$debug/links/mb_0-sw_0/state"
await is UP carrier
on mb_0 ping -qc 1 mb_1 >/dev/null || fail "no ping over the mended cable"

test_case "an interface goes with its device's driver, and comes back with its addresses"
function=$(basename "$(realpath "$ib/mb_0/device")")
driver() { on mb_0 "echo $function >/sys/bus/pci/drivers/mango_core/$1"; }
addresses() { on mb_0 ip -o addr show dev "$near" 2>/dev/null | awk '{print $4}' | sort | xargs; }
before=$(addresses)
driver unbind
expect "" "$(addresses)" "addresses without the driver"
on mb_0 ip link show dev "$near" 2>/dev/null && fail "the interface stays without the driver"
driver bind
await is UP carrier
expect "$before" "$(addresses)" "addresses after bind"
on mb_0 ping -qc 1 mb_1 >/dev/null || fail "no ping after bind"

test_case "an interface without its driver outlives a worker"
driver unbind
kill_worker
driver bind
await is UP carrier
on mb_0 ping -qc 1 mb_1 >/dev/null || fail "no ping after bind"

test_case "the interface's MTU is the port's"
active_mtu() { on mb_0 ibv_devinfo | awk '/active_mtu/ {print $2}'; }
needs ibv_devinfo
on mb_0 -- ip link set "$near" mtu 1500
await is 1024 active_mtu
on mb_0 -- ip link set "$near" mtu 200  # less than the least of RoCE
await is 256 active_mtu
on mb_0 -- ip link set "$near" mtu 1500
await is 1024 active_mtu
expect 1500 "$(cat "$mnt/class/net/$near/mtu")" "MTU in the tree"
on mb_0 -- ip link set "$near" mtu 4192
await is 4096 active_mtu

test_case "a maker that is killed leaves the rest to the next command"
round=0
for delay in 0.01 0.02 0.03 0.05; do
  mounted
  setsid "$ROCEFS" host -m "$mnt" mb_0 true &
  maker=$!
  read -rt $delay -u "$silence" || true
  kill -KILL -- -"$maker" 2>/dev/null || true
  wait "$maker" 2>/dev/null || true
  host=mb_$((++round % 2))
  expect "$host running running" "$(on "$host" hostname) $(state mb_0) $(state mb_1)" "after $delay s"
  on mb_0 ping -qc 1 mb_1 >/dev/null || fail "no ping between the hosts after $delay s"
done

test_case "several first commands at once make the hosts once"
mounted
for i in 0 1 0 1 0 1; do on mb_$i hostname >"$dir/at_once.$i.$RANDOM" & done
wait
expect "3 mb_0 3 mb_1" "$(cat "$dir"/at_once.* | sort | uniq -c | xargs)" "six commands"

test_case "hosts end with the mount, once their programs have ended"
sleeper() { pgrep -f '^sleep 98765$'; }
on mb_0 -- sleep 98765 &
await sleeper
daemon=$(daemon_pid)
unmount
await not_mounted
kill -0 "$daemon" || fail "the mount ended under a program"
kill "$(sleeper)"
wait $! || true
await all_ended "$daemon"

test_case "a host's interfaces go into a network namespace that is there already"
mounted
unshare -n sleep 98763 2>/dev/null &
await pgrep -f '^sleep 98763$'
there=$(pgrep -f '^sleep 98763$')
at_end kill "$there"
[ "$(readlink "/proc/$there/ns/net")" != "$(readlink /proc/self/ns/net)" ] || skip "no network namespaces"
inside() { nsenter -t "$there" -n "$@"; }
on mb_0 true
expect "125 rocefs attach: /etc/passwd is no network namespace" "$(outcome_of "$ROCEFS" attach -m "$mnt" mb_0 --netns /etc/passwd)" "no namespace"
expect running "$(state mb_0)" "after a refused attach"
inside ip link add "$near" type dummy 2>/dev/null || inside ip tuntap add "$near" mode tun
expect "125 rocefs attach: the network namespace has an interface $near already" "$(outcome_of "$ROCEFS" attach -m "$mnt" mb_0 --netns "/proc/$there/ns/net")" "a name that is taken"
expect running "$(state mb_0)" "after an attach that failed"
on mb_0 ping -qc 1 mb_1 >/dev/null || fail "no ping after an attach that failed"
inside ip link del "$near"
"$ROCEFS" attach -m "$mnt" mb_0 --pid "$there" || fail "attach: status $?"
expect "125 rocefs attach: host mb_0 is in that network namespace" "$(outcome_of "$ROCEFS" attach -m "$mnt" mb_1 --netns "/proc/$there/ns/net")" "a second host in one namespace"
expect "attached running" "$(state mb_0) $(state mb_1)" "states"
inside ping -qc 1 10.77.0.2 >/dev/null || fail "no ping from the namespace"
on mb_1 ping -qc 1 mb_0 >/dev/null || fail "no ping into the namespace"
expect "$(readlink "/proc/$there/ns/net")" "$(on mb_0 readlink /proc/self/ns/net)" "network of the host's commands"
kill_worker
expect attached "$(state mb_0)" "after a worker's death"
inside ping -qc 1 10.77.0.2 >/dev/null || fail "no ping after a worker's death"
"$ROCEFS" attach -m "$mnt" mb_0 --netns "/proc/$there/ns/net" || fail "attached again: status $?"
"$ROCEFS" detach -m "$mnt" mb_0 || fail "detach: status $?"
expect "125 rocefs detach: mb_0 is not attached" "$(outcome_of "$ROCEFS" detach -m "$mnt" mb_0)" "detached twice"
await eval '[ "$(inside ip -br link | wc -l)" = 1 ]'
on mb_0 ping -qc 1 mb_1 >/dev/null || fail "no ping from the host's own network again"

test_case "devices with the same host= are NICs of one machine"
printf '[device left]\nhost=big\n[device rail]\nhost=big\nip=10.78.0.1\n[device right]\nip=10.78.0.2\n[switch sw]\n' >"$dir/big.ini"
printf '[link %s sw]\n' left rail right >>"$dir/big.ini"
mounted -o config="$dir/big.ini"
expect "big right" "$(ls "$debug/hosts" | xargs)" "hosts"
expect "left rail" "$(on big 'echo $(ls /sys/class/infiniband)')" "devices of the machine with two"
expect 3 "$(on big -- ip -br link | wc -l)" "its interfaces, with lo"
on big ping -qc 1 right >/dev/null || fail "no ping by the second NIC"
on right ping -qc 1 big-$(ls "$ib/rail/device/net") >/dev/null || fail "no ping to the second NIC by name"
printf '[device left]\nhost=a/b\n[switch sw]\n[link left sw]\n' >"$dir/bad.ini"
unmounted
[[ $("$ROCEFS" -o config="$dir/bad.ini" "$mnt" 2>&1) == *"bad.ini:2: host=a/b: not a name"* ]] || fail "a bad name: $("$ROCEFS" -o config="$dir/bad.ini" "$mnt" 2>&1)"

test_case "hosts of different networks reach each other by a route to each network"
printf '[device a]\n[device b]\nip=10.77.2.1\n[device c]\nip=10.77.2.200\n[switch sw]\n' >"$dir/networks.ini"
printf '[link %s sw]\n' a b c >>"$dir/networks.ini"
mounted -o config="$dir/networks.ini"
routes() { on "$1" ip -4 route | awk '{print $1}' | sort | xargs; }
for host in a b c; do
  expect "10.77.0.0/24 10.77.2.0/24" "$(routes "$host")" "routes of $host"
done
on a ping -qc 1 c >/dev/null && on c ping -qc 1 a >/dev/null || fail "no ping to another network"
basename "$(realpath "$ib/a/device")" | tee "$mnt/bus/pci/drivers/mango_core/"{unbind,bind} >/dev/null
await eval '[ "$(routes a)" = "10.77.0.0/24 10.77.2.0/24" ]'
on a ping -qc 1 b >/dev/null || fail "no ping after bind"
unmounted

test_case "under the virtual clock there are no hosts"
mounted -o clock=virtual
expect "125 rocefs host: hosts need the real clock: a kernel has no place in virtual time" "$(outcome_of on mb_0 true)" "the virtual clock"
unmounted

test_case "a mount without hosts says why"
mounted -o ro
expect "125 rocefs host: $mnt is mounted read-only, so without hosts" "$(outcome_of on mb_0 true)" "a mount with -o ro"
unmounted

test_case "an ordinary user has hosts"
needs_user_namespaces
needs_mounters
needs_setuid_fusermount
open_to_users
mkdir -p "$dir/own/bin" "$dir/own/mnt"
install -m 755 "$ROCEFS" "$dir/own/bin"
chmod -R a+rX "$dir/own"
! $root || chown -R "$user:$user" "$dir/own"
as_mounter bash -euc 'cd "$1"
  export PATH=$PATH:$1/bin ROCEFS_MOUNT=$1/mnt
  rocefs "$1/mnt" >/dev/null
  trap "fusermount3 -u $1/mnt" EXIT
  rocefs host mb_0 -- id -u
  rocefs host mb_1 "rocefs host mb_0 hostname"
  rocefs host mb_0 ping -qc 2 -i 0.01 mb_1 | grep -o "2 received"
  rocefs host mb_0 "ip addr add 10.78.1.9/24 dev '"$near"'; ip -br -4 addr show dev '"$near"'" | grep -o 10.78.1.9' \
  bash "$dir/own" >"$dir/said" 2>&1 || fail "$(cat "$dir/said")"
wanted=$user
$root || wanted=$(id -u)
expect "$wanted mb_0 2 received 10.78.1.9" "$(xargs <"$dir/said")" "an ordinary user"
