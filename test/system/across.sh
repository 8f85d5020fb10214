#!/bin/bash
# Features of two ends, between two mounts in two network namespaces: selective retransmission, agreed on by both
# ends or not; spraying; CFR's CNPs over the wire, and the windows that obey them.
lib=$(realpath "$(dirname "$0")/lib")
. "$lib/two_mounts.bash"
if [ "${1:-}" != inside ]; then
  has_namespaces python3
  exec "${spaces[@]}" "$0" inside
fi
. "$lib/common.bash"
joined_namespaces
mounted -o uplink=10.9.0.1
far_mounted -o uplink=10.9.0.2
fardebug=$far/kernel/debug/rocefs
set_both() { for where in "$mnt" "$far"; do echo "$2" >"$where/class/infiniband/mb_0/$1"; done; }
port() { cat "$1/class/infiniband/mb_0/ports/1/hw_counters/$2"; }
for where in "$mnt" "$far"; do echo 0 >"$where/class/infiniband/mb_0/ports/1/hw_counters/lifespan"; done
resent() { value retransmitted "$debug/traffic/$1/result"; }
is_over() { ! grep -qxE 'running|connecting' "$1/traffic/$2/state"; }
flow() {  # NAME OP [KEY=VALUE…]: from the near mount, done at both ends, each byte right
  echo "$1 $2 mb_0 10.9.0.2 size=64K ${*:3}" >"$debug/traffic/start"
  for where in "$debug" "$fardebug"; do
    await is_over "$where" "$1"
    expect done "$(cat "$where/traffic/$1/state")" "$1"
    expect 0 "$(value mismatched "$where/traffic/$1/result")" "$1: mismatched"
  done
}
# Drops packets that leave one end, never the last one of a message: the next packet reveals the loss.
lose() { echo "lost drop sw_0-uplink opcode=$2 p=0.02 count=40" >"$1/inject/add"; }
lost() {
  cat "$1/inject/lost/fired"
  echo 1 >"$1/inject/lost/remove"
}

test_case "with SR at both ends little more than the lost packets is sent again"
# SR at both ends: the lost packets are sent again, little else, and later packets are kept.
set_both sr/enable 1
lose "$debug" RC_WRITE_MIDDLE
flow both write count=400 timeout=18
losses=$(lost "$debug") again=$(port "$mnt" sr_retrans)
expect 40 "$losses" "packets lost"
expect "$again" "$(resent both)" "packets sent again, all of them alone"
# A slow retransmission is requested once more.
[ "$again" -ge "$losses" ] && [ "$again" -le $((losses * 3)) ] || fail "SR: $losses lost, $again sent again"
kept=$(port "$far" sr_ooo_placed)
[ "$kept" -ge "$losses" ] || fail "SR: the far end has kept $kept packets that came ahead"
[ "$(port "$mnt" packet_seq_err)" -ge "$losses" ] || fail "SR: no NAK for some of $losses losses"
expect 0 "$(port "$mnt" local_ack_timeout_err)" "SR: time-outs"

test_case "lost READ responses alone are requested again"
lose "$fardebug" RC_READ_RESPONSE_MIDDLE
flow reads read count=400 timeout=18
losses=$(lost "$fardebug") asked=$(($(port "$mnt" sr_retrans) - again))
expect 40 "$losses" "responses lost"
[ "$asked" -gt 0 ] && [ "$asked" -le $((losses * 4)) ] || fail "SR: $losses responses lost, $asked READs again"

test_case "with SR at one end alone the flow uses go-back-N, and the data is right"
# SR at one end alone: go-back-N sends all packets after a loss again, with the same bytes.
for end in "$mnt" "$far"; do
  set_both sr/enable 0
  echo 1 >"$end/class/infiniband/mb_0/sr/enable"
  before="$(port "$mnt" sr_retrans) $(port "$far" sr_ooo_placed)"
  name=alone_$(basename "$end")
  lose "$debug" RC_WRITE_MIDDLE
  flow "$name" write count=400 timeout=18
  losses=$(lost "$debug")
  expect 40 "$losses" "$name: packets lost"
  expect "$before" "$(port "$mnt" sr_retrans) $(port "$far" sr_ooo_placed)" "$name: selective retransmission"
  [ "$(resent "$name")" -gt $((again * 2)) ] || fail "$name: $losses lost, $(resent "$name") sent again, and $again with SR"
  echo "REPORT $losses of 6400 packets lost: $(resent "$name") sent again, $again where both ends retransmit selectively"
done
set_both sr/enable 0

test_case "requests and READ responses are sprayed over exactly the ports that are set"
# Spraying with SR and CFR: requests and READ responses come from exactly the set ports; acknowledgements
# keep the flow's own port.
set_both sr/enable 1
set_both cfr/enable 1
set_both ops/udp_port_range 8
set_both ops/enable 1
python3 "$lib/roce_wire.py" near >"$dir/wire" 2>&1 &
looker=$!
at_end eval 'kill $looker 2>/dev/null'
await grep -q looking "$dir/wire"
flow sprayed write count=100
flow sprayed_reads read count=100
kill $looker
wait $looker || fail "on the wire: $(tail -n 3 "$dir/wire")"
ports_of() { awk -v end="$1" -v kind="$2" '$1 == end && $2 == kind {for (i = 4; i <= NF; ++i) print $i}' "$dir/wire"; }
for kind in "10.9.0.1 07" "10.9.0.2 0e"; do  # WRITE Middle, READ Response Middle
  ports=$(ports_of $kind)
  expect 8 "$(wc -l <<<"$ports")" "$kind: source ports"
  first=$(head -n 1 <<<"$ports")
  for i in {0..7}; do
    grep -qx $(((first + i) & 0xffff | 0xc000)) <<<"$ports" || fail "$kind: source ports: $(xargs <<<"$ports")"
  done
done
expect 1 "$(ports_of 10.9.0.2 11 | wc -l)" "source ports of acknowledgements"
set_both ops/enable 0
set_both sr/enable 0

test_case "CFR answers reordering with CNPs, and the window obeys"
sent() { port "$far" np_cnp_sent_ooo; }
heard() { echo $(($(port "$mnt" rp_cnp_handled) + $(port "$mnt" rp_cnp_ignored))); }
before=$(sent) before_heard=$(heard) handled=$(port "$mnt" rp_cnp_handled)
echo "endless write mb_0 10.9.0.2 size=64K count=100000000" >"$debug/traffic/start"
running() { [ "$(value packets "$debug/traffic/endless/result")" -gt 1000 ]; }
await running
expect 524288 "$(cat "$debug/traffic/endless/window")" "window, with nothing out of order"
echo "late reorder sw_0-uplink opcode=RC_WRITE_MIDDLE p=0.02 by=3" >"$debug/inject/add"
smaller() { [ "$(cat "$debug/traffic/endless/window")" -lt 524288 ]; }
await smaller
echo 1 >"$debug/traffic/endless/stop"
echo 1 >"$debug/inject/late/remove"
[ "$(sent)" -gt "$before" ] || fail "CFR: no CNPs for what came out of order"
[ "$(port "$mnt" rp_cnp_handled)" -gt "$handled" ] || fail "CFR: a smaller window, and no CNP that made it so"
# All CNPs have arrived; those after the flow's end found no queue pair.
crossed() { [ $(($(heard) - before_heard)) -eq $(($(sent) - before)) ]; }
await crossed
