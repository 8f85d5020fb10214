#!/bin/bash
# Two mounts in two network namespaces, joined by veth: verbs programs of one communicate with those of the
# other, and their packets are checked. As root, and as the root of a user namespace.
lib=$(realpath "$(dirname "$0")/lib")
. "$lib/two_mounts.bash"
if [ "${1:-}" != inside ]; then
  has_namespaces python3
  status=0
  "${spaces[@]}" "$0" inside || status=$?
  if [ "$(id -u)" -ne 0 ] || [[ $ROCEFS_BUILD == */?san ]]; then exit $status; fi
  if ! setpriv --reuid=65534 --regid=65534 --clear-groups unshare -Urmn true 2>/dev/null || [ ! -w /dev/fuse ]; then
    printf '%s\n' 1..1 "ok 1 - rootless # SKIP no user namespaces"
    exit $status
  fi
  # Programs and scripts that an ordinary user can reach.
  user=$ROCEFS_TEST_DIR/user
  chmod 711 "$ROCEFS_TEST_DIR" "$(dirname "$ROCEFS_TEST_DIR")"
  mkdir -p "$user"/{build/bin,build/lib,test/mnt,system}
  install -m 755 "$ROCEFS" "$user/build/bin/rocefs"
  install -m 755 "$ROCEFS_BUILD/lib/librocefs-rdmav34.so" "$user/build/lib"
  cp -r "$0" "$lib" "$user/system"
  chown -R 65534:65534 "$user"
  unshare -m bash -euc 'mknod "$1/fuse" c 10 229; chmod 666 "$1/fuse"; mount --bind "$1/fuse" /dev/fuse; rm "$1/fuse"
    export CASES_OF=rootless ROCEFS=$1/user/build/bin/rocefs ROCEFS_BUILD=$1/user/build ROCEFS_TEST_DIR=$1/user/test
    exec setpriv --reuid=65534 --regid=65534 --clear-groups unshare -Urmn "$1/user/system/$(basename "$2")" inside' \
    bash "$ROCEFS_TEST_DIR" "$0" || status=$?
  exit $status
fi

. "$lib/common.bash"
. "$lib/verbs.bash"
logs=$dir
joined_namespaces
refused() {  # OPTIONS REASON
  local said
  if said=$("$ROCEFS" -o "$1" "$mnt" 2>&1); then fail "-o $1: mounted"; fi
  [[ $said == *"$2"* ]] || fail "-o $1: said '$said'"
}
look() {
  python3 "$lib/roce_wire.py" near "$@" >"$dir/wire" 2>&1 &
  looker=$!
  at_end eval 'kill $looker 2>/dev/null'
  await grep -q looking "$dir/wire"
}
stop_looking() {
  local status=0
  kill "$looker"
  wait "$looker" || status=$?
  [ $status -eq 0 ] || fail "on the wire: $(tail -n 3 "$dir/wire")"
}
counter() { cat "$1/kernel/debug/rocefs/uplinks/uplink/$2"; }
# The server on the near mount, the client on the far one.
verbs=("$ROCEFS" enter -m "$mnt" --)
run_client() {
  local status=0
  remote timeout -k 5 60 "$ROCEFS" enter -m "$far" -- "$@" -d mb_0 -p $port 10.9.0.1 >"$logs/client" 2>&1 || status=$?
  return $status
}
uplink=$debug/uplinks/uplink
tools=()
! command -v ib_write_bw >/dev/null || tools=(ib_write_bw ib_send_bw ib_read_bw)
ticks() { awk '{print $14 + $15}' "/proc/$(worker_pid)/stat"; }
ends_busy() {
  kill $client "$server" 2>/dev/null || true
  wait $client "$server" 2>/dev/null || true
}
busy() { [ "$(counter "$mnt" rx_packets)" -gt "$1" ]; }
ports=$ib/mb_0/ports/1
link() { [ "$(cat "$ports/state") $(cat "$ports/phys_state")" = "$1" ]; }
told() { grep -q "uplink: $1" "$debug/dmesg"; }

test_case "an invalid uplink is refused with the reason"
refused uplink=10.9.9.9 "no address behind it is this machine's: 10.9.9.9 (mb_0)"
refused uplink=10.9.0.255 "uplink=10.9.0.255: a broadcast address of this machine's networks"
for line in ip=10.9.0.255 ip=224.0.0.1 ip=0.0.0.0 ip=255.255.255.255 ip6=ff02::1 ip6=:: ip6=::1; do
  printf '%s\n' '[device mb_0]' mtu=4096 "$line" '[uplink uplink]' '[link mb_0 uplink]' >"$dir/bad.ini"
  refused "config=$dir/bad.ini" "$dir/bad.ini:3: $line: "
done
refused uplink=10.9.0 "an IPv4 address is wanted"
refused uplink=10.9.0.1,clock=virtual "needs the real clock"
refused gso "gso requires uplink="
refused uplink=10.9.0.1,config=near.ini "uplink= and config= exclude each other"

test_case "an address is used once, and its link determines the MTU"
mounted -o uplink=10.9.0.1
far_mounted -o uplink=10.9.0.2
said=$("$ROCEFS" -o uplink=10.9.0.1 "$(mktemp -d -p "$dir")" 2>&1) && fail "the same address twice"
[[ $said == *"UDP port 4791 of 10.9.0.1 is in use"* ]] || fail "the same address twice: $said"
expect 10.9.0.1 "$(cat "$uplink/addresses")" "addresses"
expect 4096 "$("$ROCEFS" enter -m "$mnt" -- ibv_devinfo -d mb_0 | awk '$1 == "active_mtu:" {print $2}')" "MTU of a 4200 octet link"

test_case "programs of two mounts communicate"
look
pingpong 819200 ibv_rc_pingpong -g 1 -n 100 -c
stop_looking
for end in 10.9.0.1 10.9.0.2; do
  expect 1 "$(awk -v end=$end '$1 == end && $2 != "looking" {for (i = 4; i <= NF; ++i) print $i}' "$dir/wire" | sort -u | wc -l)" \
    "$end: source ports without spraying"
done
pingpong 819200 ibv_uc_pingpong -g 1 -n 100
pingpong 409600 ibv_ud_pingpong -g 1 -n 100 -s 2048
for tool in "${tools[@]}"; do perftest 65536 100 "$tool" -x 1; done

test_case "spraying uses as many source ports as are set"
# Spraying: requests come from as many ports as are set, in a row from the flow's own.
echo 1 >"$far/class/infiniband/mb_0/ops/enable"
echo 8 >"$far/class/infiniband/mb_0/ops/udp_port_range"
look
pingpong 8192000 ibv_rc_pingpong -g 1 -n 20 -s 204800 -m 4096
stop_looking
sprayed=$(awk '$1 == "10.9.0.2" && $2 == "01" {for (i = 4; i <= NF; ++i) print $i}' "$dir/wire")
expect 8 "$(wc -l <<<"$sprayed")" "source ports of SEND Middles, sprayed"
first=$(head -n 1 <<<"$sprayed")
for i in {0..7}; do
  grep -qx $(((first + i) & 0xffff | 0xc000)) <<<"$sprayed" || fail "source ports: $(xargs <<<"$sprayed")"
done
expect 1 "$(awk '$1 == "10.9.0.1" && $2 == "01" {print NF - 3}' "$dir/wire")" "source ports of the end that does not spray"
for where in "$mnt" "$far"; do
  for count in tx_no_socket tx_too_long tx_unreachable tx_errors rx_malformed rx_damaged rx_ids_solved rx_overflows; do
    expect 0 "$(counter "$where" $count)" "$count"
  done
done

test_case "batches are segmented before the wire, and received as they come"
# Several packets at a time, which the kernel segments before the wire; the other end receives them in
# batches, or not. Sprayed packets keep their order all the same.
ip link set near gso_max_segs 1
remote ip link set far gso_max_segs 1
echo 1 >"$uplink/gso"
look gso
pingpong 8192000 ibv_rc_pingpong -g 1 -n 20 -s 204800 -m 4096
[ "$(counter "$mnt" tx_batches)" -gt 0 ] || fail "no batches"
expect 0 "$(counter "$far" tx_batches)" "batches of the end without gso"
echo 1 >"$far/kernel/debug/rocefs/uplinks/uplink/gso"
pingpong 8192000 ibv_rc_pingpong -g 1 -n 20 -s 204800 -m 4096 -c
stop_looking
ip link set near gso_max_segs 65535
remote ip link set far gso_max_segs 65535
pingpong 8192000 ibv_rc_pingpong -g 1 -n 20 -s 204800 -m 4096 -c
[ "$(counter "$far" rx_batches)" -gt 0 ] || fail "no batches arrive"
expect "0 0" "$(counter "$mnt" rx_damaged) $(counter "$far" rx_damaged)" "damaged packets"

test_case "a capture shows each packet as it leaves"
echo "$dir/seen.pcap" >"$debug/pcap"
before=$(counter "$mnt" tx_batches)
pingpong 819200 ibv_rc_pingpong -g 1 -n 100
echo off >"$debug/pcap"
expect "$before" "$(counter "$mnt" tx_batches)" "batches while a capture is on"

test_case "an idle network uses no CPU"
before=$(ticks)
read -rt 2 <> <(:) || true
[ $(($(ticks) - before)) -le 2 ] || fail "idle: $(($(ticks) - before)) ticks of CPU in two seconds"

test_case "datagrams from strangers are counted"
python3 - <<'PYTHON'
import socket
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for octets in (b"", b"x", b"\xff" * 64, bytes(9000)):
    out.sendto(octets, ("10.9.0.1", 4791))
PYTHON
malformed() { [ "$(counter "$mnt" rx_malformed) $(counter "$mnt" rx_too_long)" = "3 1" ]; }
await malformed

test_case "a successor takes over the address of a dead worker"
kill -KILL "$(worker_pid)"
pingpong 819200 ibv_rc_pingpong -g 1 -n 100 -c

test_case "a failed link, a lost route and a smaller MTU are reported"
needs ib_write_bw
# Both ends have something to send at any time.
endless=(ib_write_bw -x 1 -b -n 100000000 -s 65536 -u 17)  # retries last as long as a busy machine takes
start_server "${endless[@]}"
run_client "${endless[@]}" &
client=$!
at_end ends_busy
await busy $(($(counter "$mnt" rx_packets) + 1000))
ip link set near down
await link "1: DOWN 3: Disabled"
await told "10.9.0.1: near is down; mb_0 is down"
expect "4: ACTIVE" "$(cat "$ib/mb_1/ports/1/state")" "the port whose address is nobody's"
before=$(counter "$mnt" rx_packets)
ip link set near up
await link "4: ACTIVE 5: LinkUp"
await told "10.9.0.1: can be used again; mb_0 is up"
expect 1 "$(cat "$ports/counters/link_downed")" "times that the link was down"
await busy $((before + 1000))
# No route.
ip route del 10.9.0.0/24 dev near
unreachable() { [ "$(counter "$mnt" tx_unreachable)" -gt 0 ]; }
await unreachable
await told "cannot send .* octets to 10.9.0.2: Network is unreachable"
before=$(counter "$mnt" rx_packets)
ip route add 10.9.0.0/24 dev near src 10.9.0.1
await busy $((before + 1000))
# Packets that are too long for the interface now.
ip link set near mtu 1500
carries() { "$ROCEFS" enter -m "$mnt" -- ibv_devinfo -d mb_0 | awk '$1 == "active_mtu:" {print $2}'; }
carries_1024() { [ "$(carries)" = 1024 ]; }
await carries_1024
expect 1120 "$(cat "$mnt"/class/net/*/mtu | sort -n | head -n 1)" "mtu of its interface in the tree"
told_mtu() { grep -qF "near has MTU 1500: mb_0 has 1024" "$debug/dmesg"; }
await told_mtu
too_long() { [ "$(counter "$mnt" tx_too_long)" -gt 0 ]; }
await too_long

test_case "a running host takes neither MTU nor carrier from the uplink, and lowers both"
if [ -e /dev/net/tun ] && [[ $ROCEFS_BUILD != */tsan ]] && "$ROCEFS" host -m "$mnt" mb_0 true 2>"$dir/why"; then
  inner=$(ls "$ib/mb_0/device/net")
  on_host() { timeout -k 5 60 "$ROCEFS" host -m "$mnt" mb_0 -- ip link set "$inner" "$@"; }
  has_mtu() { [ "$(carries)" = "$1" ]; }
  shown_mtu() { [ "$(cat "$mnt/class/net/$inner/mtu")" = "$1" ]; }
  await shown_mtu 4192  # the host's interface is known now
  expect 1024 "$(carries)" "MTU by the uplink, with a larger one of the host"
  on_host mtu 700
  await has_mtu 512
  on_host mtu 4192
  await has_mtu 1024
  ip link set near mtu 4200
  await has_mtu 4096
  ip link set near down
  await link "1: DOWN 3: Disabled"
  on_host mtu 1500
  await shown_mtu 1500
  link "1: DOWN 3: Disabled" || fail "the host has given the port carrier: $(cat "$ports/state")"
  on_host down
  ip link set near up
  await told "10.9.0.1: can be used again"
  link "1: DOWN 3: Disabled" || fail "the uplink has given the port carrier: $(cat "$ports/state")"
  on_host up
  await link "4: ACTIVE 5: LinkUp"
  on_host mtu 4192
  ip link set near mtu 1500
  await has_mtu 1024
fi

test_case "IPv6 works on a link with RoCE's MTU 1024"
# IPv6 on a link with RoCE's MTU 1024, configured by a file, without a switch.
for where in "$mnt" "$far"; do fusermount3 -u "$where" 2>/dev/null || umount "$where"; done
await gone
remote ip link set far mtu 1500
ip -6 addr add fd00:9::1/64 dev near nodad
remote ip -6 addr add fd00:9::2/64 dev far nodad
printf '%s\n' '[device mb_0]' ip6=fd00:9::1 mtu=1024 '[uplink uplink]' '[link mb_0 uplink]' >"$dir/near.ini"
mounted -o config="$dir/near.ini"
far_mounted -o uplink=fd00:9::2
expect fd00:9::1 "$(cat "$uplink/addresses")" "addresses"
expect 1024 "$("${verbs[@]}" ibv_devinfo -d mb_0 | awk '$1 == "active_mtu:" {print $2}')" "MTU of a 1500 octet link"
look
pingpong 819200 ibv_rc_pingpong -g 2 -n 100 -c
pingpong 409600 ibv_ud_pingpong -g 2 -n 200 -s 1024
stop_looking
expect "fd00:9::1 fd00:9::2" "$(awk '$1 ~ /:/ {print $1}' "$dir/wire" | sort -u | xargs)" "senders on the wire"
for where in "$mnt" "$far"; do
  for count in tx_no_socket tx_too_long tx_unreachable tx_errors rx_malformed rx_damaged; do
    expect 0 "$(counter "$where" $count)" "IPv6: $count"
  done
done
