#!/bin/bash
# Flows from one mount to another, in two network namespaces joined by veth, started by echo alone.
lib=$(dirname "$0")/lib
. "$lib/two_mounts.bash"
if [ "${1:-}" != inside ]; then
  has_namespaces python3
  exec "${spaces[@]}" "$0" inside
fi
. "$lib/common.bash"
fardebug=$far/kernel/debug/rocefs
joined_namespaces
ip addr add 2001:db8::1/64 dev near nodad
remote ip addr add 2001:db8::2/64 dev far nodad
config() {  # HOST: both an IPv4 and an IPv6 address
  cat <<INI
[device mb_0]
ip = 10.9.0.$1
ip6 = 2001:db8::$1
[switch sw_0]
[uplink up]
[link mb_0 sw_0]
[link sw_0 up]
INI
}
config 1 | sed '/uplink/a gso = on' >"$dir/1.ini"
config 2 >"$dir/2.ini"
is_over() { ! grep -qxE 'running|connecting|waiting' "$1/state"; }
over() {  # DEBUG NAME STATE
  await is_over "$1/traffic/$2"
  [[ $(cat "$1/traffic/$2/state") == $3 ]] || fail "$2 at ${1%%/kernel*}: wanted '$3', got '$(cat "$1/traffic/$2/state")'"
}
stop() { for where in "$debug" "$fardebug"; do echo 1 >"$where/traffic/$1/stop"; done; }
running() { grep -qx running "$1/traffic/f/state" && [ "$(value packets "$debug/traffic/f/result")" -gt "${2:-1000}" ]; }
endless() {
  echo "f write mb_0 10.9.0.2 count=100000000" >"$debug/traffic/start"
  await running "$fardebug"
}
one() {  # FROM-DEBUG TO-DEBUG OP ADDRESS
  local out=$dir/out
  rm -f "$out"
  if [ "$3" = read ]; then
    echo "f accept mb_0 file=$dir/file" >"$2/traffic/start"
    echo "f read mb_0 $4 qps=3 out=$out" >"$1/traffic/start"
  else
    echo "f accept mb_0 out=$out" >"$2/traffic/start"
    echo "f $3 mb_0 $4 qps=3 file=$dir/file" >"$1/traffic/start"
  fi
  over "$1" f done
  expect "$wanted" "$(sha256sum <"$out")" "$3 to $4"
  over "$2" f done
  stop f
}
driver=$far/bus/pci/drivers/mango_core device=0000:2b:00.0
mount_far() { far_mounted -o "config=$dir/2.ini"; }

test_case "a flow to another mount needs the real clock"
mounted -o clock=virtual
for start in "f write mb_0 10.9.0.2" "f accept mb_0"; do
  expect "Operation not supported" "$(store "$start" "$debug/traffic/start")" "virtual clock: $start"
done

test_case "a flow to another mount needs an uplink"
mounted
expect "Network is unreachable" "$(store "f write mb_0 10.9.0.2" "$debug/traffic/start")" "no uplink"

test_case "the exchange of a mount with an uplink listens"
mounted -o "config=$dir/1.ini"
mount_far
expect "10.9.0.1 port 18516: listening" "$(grep 10.9.0.1 "$debug/traffic/exchange")" "exchange"

test_case "every kind of flow works by both addresses, in both directions"
for op in write send read atomic uc ud; do
  size=size=64K
  case $op in atomic) size= ;; ud) size=size=4096 ;; esac
  echo "a$op $op mb_0 10.9.0.2 qps=4 $size count=200" >"$debug/traffic/start"
  echo "b$op $op mb_0 2001:db8::1 $size count=50" >"$fardebug/traffic/start"
  for name in a b; do
    for where in "$debug" "$fardebug"; do
      over "$where" $name$op done
      expect 0 "$(value mismatched "$where/traffic/$name$op/result")" "$op: mismatched"
    done
    expect "$(value received "$debug/traffic/$name$op/result")" "$(value received "$fardebug/traffic/$name$op/result")" "$op: received"
  done
  expect 10.9.0.1 "$(cat "$fardebug/traffic/a$op/peer")" "peer"
  expect 2001:db8::2 "$(cat "$debug/traffic/b$op/peer")" "peer"
  stop a$op
  stop b$op
done
expect "" "$(find "$debug/traffic" "$fardebug/traffic" -mindepth 1 -type d)" "directories of removed flows"

test_case "real files are sent in both directions"
# The receiver decides where a file is written.
head -c 8000001 /dev/urandom >"$dir/file"
wanted=$(sha256sum <"$dir/file")
expect "1 0" "$(cat "$debug/uplinks/up/gso" "$fardebug/uplinks/up/gso" | xargs)" "gso"
for op in write send read; do
  one "$debug" "$fardebug" $op 10.9.0.2
  echo 1 >"$fardebug/uplinks/up/gso"
  one "$fardebug" "$debug" $op 2001:db8::1
done

test_case "a file is written only if the far end waits for it"
echo "f write mb_0 10.9.0.2 file=$dir/file" >"$debug/traffic/start"
over "$debug" f "failed: 10.9.0.2: for a real file somebody here must wait: f accept PORT …"
grep -q "traffic/exchange: 10.9.0.1: refused: for a real file" "$fardebug/dmesg" || fail "no refusal in dmesg"
[ ! -e "$fardebug/traffic/f" ] || fail "a refused flow is there"
echo 1 >"$debug/traffic/f/stop"
expect "Invalid argument" "$(store "f write mb_0 10.9.0.2 file=$dir/file out=/tmp/x" "$debug/traffic/start")" "out= over there"

test_case "a waiting flow needs the device"
# A flow that waits fails when the device leaves, and cannot wait without a driver.
echo "f accept mb_0 out=$dir/never" >"$fardebug/traffic/start"
echo $device >"$driver/unbind"
over "$fardebug" f "failed: device removed"
expect 0 "$(value elapsed_ns "$fardebug/traffic/f/result")" "the time of a flow that never began"
echo 1 >"$fardebug/traffic/f/stop"
expect "No such device" "$(store "f accept mb_0" "$fardebug/traffic/start")" "accept without a driver"
echo $device >"$driver/bind"

test_case "strangers at the exchange do not affect a flow"
python3 - <<'PYTHON'
import socket
silent = [socket.create_connection(("10.9.0.1", 18516)) for i in range(100)]
for said in (b"\n", b"\xff" * 300000, b"flow 1 name=f op=write", b"GET / HTTP/1.0\r\n\r\n"):
    one = socket.create_connection(("10.9.0.1", 18516))
    try:
        one.sendall(said)
    except OSError:
        pass
PYTHON
echo "f write mb_0 2001:db8::1 count=10" >"$fardebug/traffic/start"
over "$fardebug" f done
stop f

test_case "a flow fails if packets stop while TCP does not"
echo "f write mb_0 10.9.0.2 count=100000000 timeout=12" >"$debug/traffic/start"
await running "$fardebug"
echo down >"$fardebug/links/sw_0-up/state"
over "$debug" f "failed: transport retry count exceeded"
over "$fardebug" f "failed: 10.9.0.1: transport retry count exceeded"
echo up >"$fardebug/links/sw_0-up/state"
stop f

test_case "a flow ends when the far worker or mount is killed, and the next one runs"
# The far worker is killed, and then the far mount: this end reports it, and the next flow runs.
endless
supervisor=$(pgrep -of "^$ROCEFS .*$far\$" -r S,R,D)
kill -KILL "$(pgrep -P "$supervisor" -r S,R,D | head -n 1)"
over "$debug" f "failed: 10.9.0.2 has gone: *"
echo 1 >"$debug/traffic/f/stop"
await grep -q "10.9.0.2 port 18516: listening" "$fardebug/traffic/exchange"
[ ! -e "$fardebug/traffic/f" ] || fail "a flow of the worker that died"
endless
kill -KILL "$supervisor" $(pgrep -P "$supervisor")
over "$debug" f "failed: 10.9.0.2 has gone: *"
echo 1 >"$debug/traffic/f/stop"
echo "f write mb_0 10.9.0.2" >"$debug/traffic/start"
over "$debug" f "failed: 10.9.0.2 port 18516: Connection refused"
echo 1 >"$debug/traffic/f/stop"
umount -l "$far" 2>/dev/null || fusermount3 -uz "$far" 2>/dev/null || true  # or its guard has
mount_far
echo "f send mb_0 10.9.0.2 count=100" >"$debug/traffic/start"
over "$debug" f done
over "$fardebug" f done
echo 1 >"$debug/reset"
[ ! -e "$debug/traffic/f" ] || fail "a flow outlived a reset"
