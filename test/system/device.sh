#!/bin/bash
# Files of a NIC that tools look for: identity, PCI function, interface, port, GIDs, counters.
. "$(dirname "$0")/lib/common.bash"
mounted
device=$ib/mb_0
function=$mnt/devices/pci0000:2b/0000:2b:00.0
port=$device/ports/1
is() { expect "$2" "$(cat "$1")" "${1#"$mnt"/}"; }  # FILE TEXT
links=$debug/links
net=$mnt/class/net/enp43s0
far=$ib/mb_1/ports/1/hw_counters
leads() { expect "$2" "$(readlink "$1")" "${1#"$mnt"/}"; }

test_case "the device has its identity"
is "$device/node_type" "1: CA"
is "$device/node_guid" 0200:4cff:fe6d:6201
is "$device/sys_image_guid" 0200:4cff:fe6d:6201
is "$device/node_desc" "mb_0 emulated RoCEv2 HCA"
is "$device/fw_ver" 1.0.0
is "$device/hw_rev" 1
is "$device/hca_type" MB100
is "$device/board_id" MB_0000000001
is "$device/uevent" NAME=mb_0
expect ok "$(store "rack 7" "$device/node_desc")" "node_desc"
is "$device/node_desc" "rack 7"
long=$(printf '%064d' 7)
expect ok "$(store "$long" "$device/node_desc")" "64 octets"
is "$device/node_desc" "$long"
expect ok "$(store "${long}8" "$device/node_desc")" "65 octets"
is "$device/node_desc" "$long"
expect ok "$(store "rack 7" "$device/node_desc")" "node_desc"
leads "$ib/mb_0" ../../devices/pci0000:2b/0000:2b:00.0/infiniband/mb_0
leads "$device/device" ../../../0000:2b:00.0
leads "$device/subsystem" ../../../../../class/infiniband

test_case "its PCI function is described as the kernel does"
is "$device/device/vendor" 0x1fc9
is "$device/device/device" 0x4d42
is "$device/device/class" 0x020000
is "$device/device/numa_node" -1
if [ -r /sys/devices/system/cpu/online ]; then
  is "$device/device/local_cpulist" "$(cat /sys/devices/system/cpu/online)"
fi
expect 7 "$(wc -l <"$function/resource")" "lines of resource"
is "$function/uevent" "DRIVER=mango_core
PCI_CLASS=20000
PCI_ID=1FC9:4D42
PCI_SUBSYS_ID=1FC9:0100
PCI_SLOT_NAME=0000:2b:00.0
MODALIAS=$(cat "$function/modalias")"
leads "$function/driver" ../../../bus/pci/drivers/mango_core
leads "$function/subsystem" ../../../bus/pci
leads "$mnt/bus/pci/drivers/mango_core/0000:2b:00.0" ../../../../devices/pci0000:2b/0000:2b:00.0
leads "$mnt/bus/pci/devices/0000:2b:00.0" ../../../devices/pci0000:2b/0000:2b:00.0
expect "$function" "$(realpath "$device/device")" "the function behind device/"

test_case "its interface is in class/net"
leads "$net" ../../devices/pci0000:2b/0000:2b:00.0/net/enp43s0
leads "$net/device" ../../../0000:2b:00.0
leads "$net/subsystem" ../../../../../class/net
expect enp43s0 "$(ls "$device/device/net")" "device/net"
is "$net/address" 02:00:4c:6d:62:01
is "$net/mtu" 4192
is "$net/operstate" up
is "$net/carrier" 1
is "$net/speed" 10000
is "$net/duplex" full
is "$net/type" 1
is "$net/dev_port" 0
is "$net/dev_id" 0x0
is "$net/uevent" INTERFACE=enp43s0

test_case "its port has state, keys and GIDs"
is "$port/state" "4: ACTIVE"
is "$port/phys_state" "5: LinkUp"
is "$port/rate" "10 Gb/sec (4X SDR)"
is "$port/link_layer" Ethernet
is "$port/lid" 0x2
is "$port/lid_mask_count" 0
is "$port/sm_lid" 0x1
is "$port/sm_sl" 0
is "$port/cap_mask" 0x04010000
expect 0 "$(ls "$port/pkeys")" "pkeys"
is "$port/pkeys/0" 0xffff
is "$port/gids/0" fe80:0000:0000:0000:0000:4cff:fe6d:6201
is "$port/gids/1" 0000:0000:0000:0000:0000:ffff:0a4d:0001
for i in 2 3 4 5 6 7; do
  is "$port/gids/$i" 0000:0000:0000:0000:0000:0000:0000:0000
  for attribute in types ndevs; do
    [ -e "$port/gid_attrs/$attribute/$i" ] || fail "no $attribute/$i"
    said=$(LC_ALL=C cat "$port/gid_attrs/$attribute/$i" 2>&1) && fail "$attribute/$i of an empty GID"
    [[ $said == *"Invalid argument" ]] || fail "$attribute/$i: $said"
  done
done
for i in 0 1; do
  is "$port/gid_attrs/types/$i" "RoCE v2"
  is "$port/gid_attrs/ndevs/$i" enp43s0
done

test_case "libibverbs finds its uverbs files"
verbs=$mnt/class/infiniband_verbs
expect "abi_version uverbs0 uverbs1" "$(LC_ALL=C ls "$verbs" | xargs)" "class/infiniband_verbs"
is "$verbs/abi_version" 6
leads "$verbs/uverbs0" ../../devices/pci0000:2b/0000:2b:00.0/infiniband_verbs/uverbs0
leads "$verbs/uverbs1" ../../devices/pci0000:ac/0000:ac:00.0/infiniband_verbs/uverbs1
is "$verbs/uverbs0/ibdev" mb_0
is "$verbs/uverbs1/ibdev" mb_1
is "$verbs/uverbs0/dev" 1:3
is "$verbs/uverbs0/abi_version" 1
is "$verbs/uverbs0/uevent" "MAJOR=1
MINOR=3
DEVNAME=infiniband/uverbs0"
leads "$verbs/uverbs0/device" ../../../0000:2b:00.0
leads "$verbs/uverbs0/subsystem" ../../../../../class/infiniband_verbs
expect "issm0 issm1 rdma_cm umad0 umad1 uverbs0 uverbs1" "$(LC_ALL=C ls "$mnt/dev/infiniband" | xargs)" "dev/infiniband"
leads "$mnt/dev/infiniband/uverbs0" /dev/null
expect "symbolic link" "$(stat -c %F "$mnt/dev/infiniband/uverbs0")" "uverbs0"
expect "character special file 1:3" "$(stat -Lc '%F %Hr:%Lr' "$mnt/dev/infiniband/uverbs1")" "uverbs1"

test_case "libibumad finds its umad files"
mads=$mnt/class/infiniband_mad
expect "abi_version issm0 issm1 umad0 umad1" "$(LC_ALL=C ls "$mads" | xargs)" "class/infiniband_mad"
is "$mads/abi_version" 5
leads "$mads/umad0" ../../devices/pci0000:2b/0000:2b:00.0/infiniband_mad/umad0
is "$mads/umad0/ibdev" mb_0
is "$mads/umad0/port" 1
leads "$mads/umad0/device" ../../../0000:2b:00.0
leads "$mads/umad0/subsystem" ../../../../../class/infiniband_mad
expect "regular empty file 666" "$(stat -c '%F %a' "$mnt/dev/infiniband/umad0")" "umad0"

test_case "the standard's counters exist and count a lost flow"
expect "VL15_dropped excessive_buffer_overrun_errors link_downed link_error_recovery\
 local_link_integrity_errors multicast_rcv_packets multicast_xmit_packets\
 port_rcv_constraint_errors port_rcv_data port_rcv_errors port_rcv_packets\
 port_rcv_remote_physical_errors port_rcv_switch_relay_errors port_xmit_constraint_errors\
 port_xmit_data port_xmit_discards port_xmit_packets port_xmit_wait symbol_error\
 unicast_rcv_packets unicast_xmit_packets" "$(LC_ALL=C ls "$port/counters" | xargs)" "counters"
expect 0 "$(cat "$port"/counters/* | sort -u)" "counters of a new port"
echo down >"$links/mb_0-sw_0/state"
echo "f write mb_0 mb_1 size=4096 count=1 timeout=2 retry=0" >"$debug/traffic/start"
await state_is f "failed: transport retry count exceeded"
is "$port/counters/link_downed" 1
is "$port/counters/port_xmit_discards" 1
is "$port/counters/port_xmit_packets" 0
echo up >"$links/mb_0-sw_0/state"
is "$port/state" "4: ACTIVE"

test_case "a port is down if either direction of its cable is"
echo down >"$links/sw_0-mb_0/state"
is "$port/state" "1: DOWN"
is "$port/phys_state" "3: Disabled"
is "$net/operstate" down
is "$net/carrier" 0
is "$net/speed" -1
is "$net/duplex" unknown
is "$port/counters/link_downed" 2
is "$ib/mb_1/ports/1/state" "4: ACTIVE"
echo up >"$links/sw_0-mb_0/state"

test_case "hw_counters are cached for a lifespan"
# hw_counters are cached for a lifespan, all of a port together, as in ib_core.
lifespan=$port/hw_counters/lifespan
is "$lifespan" 10
for bad in -1 10001 0x10 1.5 "" abc; do
  expect "Invalid argument" "$(store "$bad" "$lifespan")" "lifespan '$bad'"
done
write() { echo "$1 write mb_0 mb_1 count=3" >"$debug/traffic/start"; await state_is "$1" "done"; }
echo 10000 >"$far/lifespan"
is "$far/rx_write_requests" 0
write g
is "$far/rx_write_requests" 0
echo 0 >"$far/lifespan"
is "$far/rx_write_requests" 3
write h
is "$far/rx_write_requests" 6

test_case "a poll is woken when the shown value has changed, and not before"
needs python3
cat >"$dir/poll.py" <<'PY'
import os, select, sys
link, *files = sys.argv[1:]
def store(knob, value):
    with open(f"{link}/{knob}", "w") as f: f.write(value)
fds = {f: os.open(f, os.O_RDONLY) for f in files}
def pending(wait):
    p = select.poll()
    for fd in fds.values(): p.register(fd, select.POLLPRI)
    woken = dict(p.poll(wait))
    for fd, events in woken.items():
        if events != select.POLLPRI | select.POLLERR: sys.exit(f"events {events:#x}")
    return sorted(os.path.basename(f) for f, fd in fds.items() if fd in woken)
def expect(what, wanted):
    got = pending(20000) if wanted else pending(0)
    if got != wanted: sys.exit(f"{what}: {got}, wanted {wanted}")
    for fd in fds.values(): os.pread(fd, 99, 0)
for fd in fds.values(): os.read(fd, 99)
expect("nothing has changed", [])
store("loss", "0.5"); store("loss", "0")
expect("another knob", ["loss"])
store("rate", "25G")
expect("rate", ["rate", "speed"])
store("rate", "25G")
expect("the same rate", [])
store("state", "down")
expect("down", ["carrier", "duplex", "operstate", "phys_state", "speed", "state"])
store("state", "up")
expect("up", ["carrier", "duplex", "operstate", "phys_state", "speed", "state"])
PY
timeout 60 python3 "$dir/poll.py" "$links/mb_0-sw_0" "$links/mb_0-sw_0/loss" "$port"/{state,phys_state,rate} \
  "$net"/{operstate,carrier,speed,duplex} || fail "poll"

test_case "under the virtual clock counters are read without a cache"
mounted -o clock=virtual
echo 10000 >"$far/lifespan"
is "$far/rx_write_requests" 0
echo "f write mb_0 mb_1 count=3" >"$debug/traffic/start"
echo idle >"$debug/clock/advance"
is "$far/rx_write_requests" 3
