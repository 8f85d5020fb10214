#!/bin/bash
# A device of two ports, as the vendors' examples have it: two of everything that belongs to a port.
. "$(dirname "$0")/lib/common.bash"
ini=$dir/net.ini
cat >"$ini" <<'INI'
[clock]
mode = virtual
[device mlx5_0]
ports = 2
netdev = eth0
ip = 192.168.0.1
[port mlx5_0 2]
netdev = eth1
ip = 192.168.1.1
ip6 = 2001:db8::1
mtu = 1024
[device mlx5_1]
ports = 2
[switch a]
[switch b]
[link mlx5_0 a]
[link mlx5_1/1 a]
[link mlx5_0/2 b]
rate = 25G
[link mlx5_1/2 b]
[knobs]
kernel/debug/rocefs/links/mlx5_0.2-b/delay = 3us
INI
mounted -o config="$ini"
device=$ib/mlx5_0

test_case "a two-port device has two of everything that belongs to a port"
expect "1 2" "$(ls "$device/ports" | xargs)" "ports"
expect "a-mlx5_0 a-mlx5_1 b-mlx5_0.2 b-mlx5_1.2 mlx5_0-a mlx5_0.2-b mlx5_1-a mlx5_1.2-b" \
  "$(ls "$debug/links" | xargs)" "links"
expect 3us "$(cat "$debug/links/mlx5_0.2-b/delay")" "a start value by the link's directory"
expect "eth0 eth1" "$(ls "$device/device/net" | xargs)" "interfaces of the function"
expect "0 1" "$(cat "$mnt"/class/net/eth{0,1}/dev_port | xargs)" "dev_port"
expect "4192 1120" "$(cat "$mnt"/class/net/eth{0,1}/mtu | xargs)" "mtu"
expect "10000 25000" "$(cat "$mnt"/class/net/eth{0,1}/speed | xargs)" "speed"
expect "eth0 eth1" "$(cat "$device"/ports/{1,2}/gid_attrs/ndevs/1 | xargs)" "ndevs"
expect "0000:0000:0000:0000:0000:ffff:c0a8:0101" "$(cat "$device/ports/2/gids/1")" "GID 1 of port 2"
expect "2001:0db8:0000:0000:0000:0000:0000:0001" "$(cat "$device/ports/2/gids/2")" "GID 2 of port 2"
expect "0000:0000:0000:0000:0000:0000:0000:0000" "$(cat "$device/ports/1/gids/2")" "GID 2 of port 1"
[ "$(cat "$device/ports/1/gids/0")" != "$(cat "$device/ports/2/gids/0")" ] || fail "the ports share a GUID"
expect "$(cat "$device/node_guid")" "$(cat "$device/sys_image_guid")" "GUIDs of the device"

test_case "traffic over the second ports moves only their counters"
echo "f write mlx5_0/2 mlx5_1/2 size=10000 count=10" >"$debug/traffic/start"
echo idle >"$debug/clock/advance"
expect "done" "$(cat "$debug/traffic/f/state")" "a flow between the second ports"
expect 0 "$(cat "$device/ports/1/counters/port_xmit_packets")" "packets of port 1"
expect 100 "$(cat "$device/ports/2/counters/port_xmit_packets")" "packets of port 2: 10 of 1024 each"
expect 10 "$(cat "$ib/mlx5_1/ports/2/hw_counters/rx_write_requests")" "WRITEs at the far end"
echo "g send mlx5_0/2 mlx5_1/2 gid=2" >"$debug/traffic/start" 2>/dev/null && fail "no GID 2 there"
echo "h send mlx5_0 mlx5_1/1" >"$debug/traffic/start"
echo idle >"$debug/clock/advance"
expect "done" "$(cat "$debug/traffic/h/state")" "a flow between the first ports"
for port in mlx5_0/3 mlx5_0/ /1 mlx5_0/2/1 a; do
  expect "Invalid argument" "$(store "i write $port mlx5_1" "$debug/traffic/start")" "port $port"
done

test_case "the link of one port goes down, and the other stays up"
echo down >"$debug/links/mlx5_0.2-b/state"
expect "4: ACTIVE 1: DOWN" "$(cat "$device"/ports/{1,2}/state | xargs)" "states"
expect "up down" "$(cat "$mnt"/class/net/eth{0,1}/operstate | xargs)" "operstates"
expect "0 1" "$(cat "$device"/ports/{1,2}/counters/link_downed | xargs)" "link_downed"

test_case "both ports of a function leave and come back together"
function=$(basename "$(realpath "$device/device")")
echo "$function" >"$mnt/bus/pci/drivers/mango_core/unbind"
expect mlx5_1 "$(ls "$ib" | xargs)" "devices"
expect "enp172s0 enp172s0d1" "$(ls "$mnt/class/net" | grep -v mgmt | xargs)" "interfaces"
echo "$function" >"$mnt/bus/pci/drivers/mango_core/bind"
expect "1 2" "$(ls "$device/ports" | xargs)" "ports of what came back"
expect "0 0" "$(cat "$device"/ports/{1,2}/counters/link_downed | xargs)" "its counters"
