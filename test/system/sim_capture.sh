#!/bin/bash
# Captures on the cables of a fabric: CE marks, PAUSE frames, and CNPs that a switch made.
. "$(dirname "$0")/lib/common.bash"
needs tshark
cat >"$dir/cables.ini" <<'INI'
[sim]
capture = yes
[topology]
kind = dumbbell
hosts = 4
rate = 25G
delay = 1us
[knobs]
kernel/debug/rocefs/links/sw_0-sw_1/capture = 1
kernel/debug/rocefs/links/sw_0-h?/capture = 1
kernel/debug/rocefs/fabric/sw_0/ecn/enable = 1
kernel/debug/rocefs/fabric/sw_0/pfc/mode = static
kernel/debug/rocefs/fabric/sw_0/pfc/threshold = 50K
kernel/debug/rocefs/fabric/sw_0/ports/3/npcc/enable = 1
class/infiniband/h?/device/net/*/ecn/roce_rp/enable/0 = 1
[flows]
f{0..1} = write h{0..1} h{2..3} size=256K count=4
INI
"$ROCEFS" sim "$dir/cables.ini" --out "$dir/out" >"$dir/table" 2>"$dir/err" || fail "$(cat "$dir/err")"
fields() {  # FILTER FIELD…
  local filter=$1 field
  local -a wanted=()
  shift
  for field; do wanted+=(-e "$field"); done
  tshark -r "$dir/out/packets.pcapng" -Y "$filter" -T fields "${wanted[@]}" 2>/dev/null
}
on() { echo "frame.interface_name == \"$1\""; }

test_case "packets have an interface for each port and each cable that is captured"
expect "h0 h1 h2 h3 sw_0-h0 sw_0-h1 sw_0-sw_1" "$(fields frame frame.interface_name | sort -u | xargs)" "interfaces"
sent=$(fields "$(on h0) && infiniband.bth.opcode <= 11 && infiniband.bth.opcode >= 6" frame.number | wc -l)
carried=$(fields "$(on sw_0-sw_1) && ip.src == 10.77.0.1 && infiniband.bth.opcode <= 11 && infiniband.bth.opcode >= 6" frame.number | wc -l)
expect "$sent" "$carried" "WRITEs of h0 behind the switch"
expect 0 "$(fields 'eth.fcs.status == 0 || infiniband.invariant.crc.bad' frame.number | wc -l)" "damaged frames"

test_case "the CNPs of a switch are captured on their way to the sender"
[ "$(fields "$(on sw_0-h0) && infiniband.bth.opcode == 0x81" frame.number | wc -l)" -gt 0 ] || fail "no CNP"

test_case "the marks of a switch are on the cable behind it, not before it"
sed '/npcc/d' "$dir/cables.ini" >"$dir/marks.ini"
"$ROCEFS" sim "$dir/marks.ini" --out "$dir/out" >"$dir/table" 2>"$dir/err" || fail "$(cat "$dir/err")"
marked=$(fields "$(on sw_0-sw_1) && ip.dsfield.ecn == 3" frame.number | wc -l)
[ "$marked" -gt 0 ] || fail "no CE mark"
expect 0 "$(fields "$(on h0) && ip.dsfield.ecn == 3" frame.number | wc -l)" "marks of a sender"

test_case "PAUSE frames are on the cable towards the sender"
fields "$(on sw_0-h0) && eth.type == 0x8808" eth.dst macc.opcode | sort -u >"$dir/pfc"
grep -qi "^01:80:c2:00:00:01.*0x0101" "$dir/pfc" || fail "no PFC frame: $(cat "$dir/pfc")"
