#!/bin/bash
# Verbs programs over IPv6: the stock pingpongs and perftest by the index of an IPv6 GID, under
# `rocefs enter` and on hosts.
. "$(dirname "$0")/lib/common.bash"
. "$lib/verbs.bash"
needs ibv_rc_pingpong
logs=$dir

mounted
verbs=("$ROCEFS" enter -m "$mnt" --)
needs_enter
# GID 0 is the link-local address, of the interface's MAC.
for device in mb_0 mb_1; do
  [[ $(cat "$ib/$device/ports/1/gids/0") == fe80:* ]] || fail "GID 0 of $device: $(cat "$ib/$device/ports/1/gids/0")"
done
# RoCEv2 packets of a capture by IP version: "IPV4 IPV6".
versions() {
  python3 - "$1" <<'P'
import struct, sys
data, at, count = open(sys.argv[1], "rb").read(), 24, {4: 0, 6: 0}
while at < len(data):
    length, = struct.unpack("<I", data[at + 8 : at + 12])
    packet = data[at + 16 + 14 : at + 16 + length]
    udp = packet[20:] if packet[0] >> 4 == 4 else packet[40:]
    if packet[9 if packet[0] >> 4 == 4 else 6] == 17 and struct.unpack("!H", udp[2:4])[0] == 4791:
        count[packet[0] >> 4] += 1
    at += 16 + length
print(count[4], count[6])
P
}
captured() { echo "$dir/$1.pcap" >"$debug/pcap"; }
all_ipv6() {  # NAME: since captured
  echo off >"$debug/pcap"
  await grep -qx off "$debug/pcap"
  read -r four six <<<"$(versions "$dir/$1.pcap")"
  [ "$four" -eq 0 ] && [ "$six" -gt 100 ] || fail "$1: $four packets of IPv4, $six of IPv6"
}

test_case "each stock pingpong runs over IPv6"
captured pingpongs
pingpong 819200 ibv_rc_pingpong -g 0 -n 100 -c
pingpong 819200 ibv_rc_pingpong -g 0 -n 100 -e
pingpong 819200 ibv_uc_pingpong -g 0 -n 100
pingpong 409600 ibv_ud_pingpong -g 0 -n 100 -s 2048
pingpong 819200 ibv_srq_pingpong -g 0 -n 100
all_ipv6 pingpongs

test_case "perftest runs over IPv6 with each service"
needs ib_write_bw
captured perftest
for tool in ib_write_bw ib_send_bw ib_read_bw ib_write_lat; do perftest 65536 100 $tool -x 0; done
perftest 65536 100 ib_write_bw -c UC -x 0
perftest 2048 100 ib_send_bw -c UD -x 0
perftest 8 100 ib_atomic_bw -x 0
all_ipv6 perftest

test_case "perftest chooses an IPv6 GID by itself where it is asked to"
needs ib_write_bw
grep -q -- --ipv6 <<<"$(ib_write_bw --help 2>&1)" || skip "this perftest has no --ipv6"
captured chosen
perftest 65536 100 ib_write_bw --ipv6
all_ipv6 chosen

test_case "perftest and the pingpongs run over IPv6 between hosts"
needs ib_write_bw
[ -e /dev/net/tun ] || skip "no /dev/net/tun here"
[[ $ROCEFS_BUILD != */tsan ]] || skip "the thread of ThreadSanitizer is one too many for setns(2)"
on() { timeout -k 5 60 "$ROCEFS" host -m "$mnt" "$@"; }  # HOST COMMAND…
on mb_0 true 2>"$dir/why" || skip "no hosts here: $(cat "$dir/why")"
listens_on() { on "$1" "ss -Hltn 'sport = :$2'" | grep -q .; }  # HOST PORT
# The server on mb_1, the client on mb_0, which reaches it by an address or a name.
between() {  # ADDRESS COMMAND…
  on mb_1 "${@:2}" >"$dir/server" 2>&1 &
  await listens_on mb_1 18515
  on mb_0 "${@:2}" "$1" >"$dir/client" || fail "${*:2}: $(said_both)"
  wait $! || fail "${*:2}: the server: $(said_both)"
}
captured hosts
for kind in rc uc ud srq; do between mb_1 ibv_${kind}_pingpong -g 0 -n 100 -s 1024; done
between mb_1 ib_write_bw -x 0 -n 100
all_ipv6 hosts
