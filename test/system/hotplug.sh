#!/bin/bash
# A device leaves and comes back by its driver's unbind and bind: errors are the kernel's, open files
# give ENODEV, flows fail with the reason, and names appear and disappear at once.
. "$(dirname "$0")/lib/common.bash"
driver=$mnt/bus/pci/drivers/mango_core
address=0000:2b:00.0
function=$mnt/devices/pci0000:2b/$address
enodev="No such device"
names=("$ib/mb_0" "$ib/mb_0/ports/1/state" "$mnt/class/net/enp43s0" "$function/infiniband" "$function/net"
  "$function/net/enp43s0/speed" "$function/driver" "$driver/$address" "$function/infiniband_verbs"
  "$mnt/class/infiniband_verbs/uverbs0" "$mnt/dev/infiniband/uverbs0")

mounted -o clock=virtual

test_case "bind and unbind fail with the errors of the kernel"
# drivers/base/bus.c: ENODEV for a device that is missing or not bound, EBUSY for a bound one.
for text in "" 0000:2b:00.1 mb_0 "$address " 2b:00.0 "$address x"; do
  expect "$enodev" "$(store "$text" "$driver/unbind")" "unbind '$text'"
  expect "$enodev" "$(store "$text" "$driver/bind")" "bind '$text'"
done
expect "Device or resource busy" "$(store $address "$driver/bind")" "bind of what is bound"
grep -q "bind: $address is bound already (EBUSY)" "$debug/dmesg" || fail "dmesg does not say why"

test_case "unbind ends flows of the device with a reason, and its open files with ENODEV"
echo "my node" >"$ib/mb_0/node_desc"
echo 5 >"$ib/mb_0/ports/1/hw_counters/lifespan"
echo "a write mb_0 mb_1 count=1000000" >"$debug/traffic/start"
echo "b send mb_1 mb_0 count=1000000" >"$debug/traffic/start"
echo "c write mb_1 mb_1 count=10" >"$debug/traffic/start"
echo 30us >"$debug/clock/advance"
for name in a b c; do state_is $name running || fail "flow $name: $(cat "$debug/traffic/$name/state")"; done

exec 3<"$ib/mb_0/ports/1/state" 4<"$ib/mb_0/node_desc"
read -r line <&3
printf %s $address >"$driver/unbind"
expect "failed: device removed" "$(cat "$debug/traffic/a/state")" "a flow from it"
expect "failed: device removed" "$(cat "$debug/traffic/b/state")" "a flow to it"
expect running "$(cat "$debug/traffic/c/state")" "a flow elsewhere"
for fd in 3 4; do
  said=$(LC_ALL=C cat <&$fd 2>&1) && fail "an open file of it can be read"
  [[ $said == *"$enodev" ]] || fail "an open file of it: $said"
done
exec 3<&- 4<&-

test_case "the names of a device disappear at once"
for path in "${names[@]}"; do [ ! -e "$path" ] && [ ! -L "$path" ] || fail "$path is still there"; done
expect mb_1 "$(ls "$ib")" "devices"
expect "issm1 rdma_cm umad1 uverbs1" "$(ls "$mnt/dev/infiniband" | xargs)" "devices for verbs"
expect 6 "$(cat "$mnt/class/infiniband_verbs/abi_version")" "the class stays"
expect 2 "$(stat -c %h "$function")" "links to the function's directory"
expect 0x4d42 "$(cat "$function/device")" "the function stays"
grep -q DRIVER "$function/uevent" && fail "the function has no driver"
expect "$enodev" "$(store $address "$driver/unbind")" "unbind of what is not bound"
expect "$enodev" "$(store "d write mb_0 mb_1" "$debug/traffic/start")" "a flow over what has gone"
grep -q "mb_0 has no driver (ENODEV)" "$debug/dmesg" || fail "dmesg does not say why"

test_case "packets to a removed device are counted as drops"
echo 25G >"$debug/links/mb_0-sw_0/rate"
echo idle >"$debug/clock/advance"
expect "done" "$(cat "$debug/traffic/c/state")" "a flow elsewhere"
[ "$(cat "$debug/drops/no_device")" -gt 0 ] || fail "nothing arrived where it had been"

test_case "bind brings the device back with its defaults"
echo $address >"$driver/bind"
for path in "${names[@]}"; do [ -e "$path" ] || fail "$path is not there yet"; done
expect 6 "$(stat -c %h "$function")" "links to the function's directory"
expect "mb_0 emulated RoCEv2 HCA" "$(cat "$ib/mb_0/node_desc")" "a knob of what has come back"
expect 10 "$(cat "$ib/mb_0/ports/1/hw_counters/lifespan")" "lifespan"
expect "25 Gb/sec (1X EDR)" "$(cat "$ib/mb_0/ports/1/rate")" "rate"
expect 0 "$(cat "$ib"/mb_0/ports/1/counters/* | sort -u)" "its counters"
echo "e write mb_0 mb_1 count=3" >"$debug/traffic/start"
echo "f send mb_1 mb_0 count=3" >"$debug/traffic/start"
echo idle >"$debug/clock/advance"
expect "done" "$(cat "$debug/traffic/e/state")" "a flow from what has come back"
expect "done" "$(cat "$debug/traffic/f/state")" "a flow to it"

test_case "a file opened before unbind stays invalid after bind"
exec 3<"$ib/mb_0/ports/1/state"
read -r line <&3
echo $address >"$driver/unbind"
echo $address >"$driver/bind"
read -r line <&3 2>/dev/null && fail "a file of the earlier device can be read"
exec 3<&-

test_case "a poll of a removed file is woken"
needs python3
timeout 60 python3 - "$ib/mb_0/ports/1/state" "$driver" $address <<'PY' || fail "poll of what goes"
import os, select, subprocess, sys
state, driver, address = sys.argv[1:]
fd = os.open(state, os.O_RDONLY)
os.read(fd, 99)
p = select.poll()
p.register(fd, select.POLLPRI)
assert p.poll(0) == []
child = subprocess.Popen(["sh", "-c", f"echo {address} > {driver}/unbind"])
events = p.poll(20000)
assert events and events[0][1] & select.POLLERR, events
try:
    os.pread(fd, 99, 0)
    sys.exit("it could be read")
except OSError as e:
    assert e.errno == 19, e
sys.exit(child.wait())
PY
echo $address >"$driver/bind"

test_case "a hundred rounds of unbind and bind under traffic leave nothing behind"
mounted
hammer() { while [ ! -e "$dir/enough" ]; do find -L "$ib" "$mnt/class/net" -maxdepth 5 -type f -exec cat {} + >/dev/null 2>&1 || true; done; }
hammer &
looker=$!
at_end eval "kill $looker 2>/dev/null"
ops=(write send read atomic uc ud)
round() {
  echo "f ${ops[$1 % 6]} mb_0 mb_1 qps=8 count=1000000" >"$debug/traffic/start"
  echo "g ${ops[($1 + 1) % 6]} mb_1 mb_0 qps=2 count=1000000" >"$debug/traffic/start"
  echo $address >"$driver/unbind"
  [ ! -e "$ib/mb_0" ] || fail "still there in round $1"
  expect "failed: device removed" "$(cat "$debug/traffic/f/state")" "round $1"
  expect "failed: device removed" "$(cat "$debug/traffic/g/state")" "round $1"
  echo $address >"$driver/bind"
  expect "4: ACTIVE" "$(cat "$ib/mb_0/ports/1/state")" "round $1"
  echo 1 >"$debug/traffic/f/stop"
  echo 1 >"$debug/traffic/g/stop"
}
resident() {  # of the supervisor and its worker
  local pid sum=0
  for pid in $(pgrep -f "^$ROCEFS .*$mnt\$" -r S,R,D); do
    sum=$((sum + $(awk '/^VmRSS/ {print $2}' "/proc/$pid/status")))
  done
  echo $sum
}
for i in $(seq 20); do round "$i"; done
before=$(resident)
for i in $(seq 21 100); do round "$i"; done
after=$(resident)
echo "resident: $before kB after 20 rounds, $after kB after 100"
touch "$dir/enough"
wait $looker
# A sanitizer keeps freed memory for a while.
grep -qE '__[at]san_init' "$ROCEFS" || [ $((after - before)) -lt 4096 ] || fail "it grows"
echo "h write mb_0 mb_1 count=10" >"$debug/traffic/start"
await state_is h "done"
