# Tools of infiniband-diags compared with the tree. `diags` is the command that puts
# a tool where it finds the devices, for example `rocefs enter -m MNT --`; $mnt is the mount. The
# topology is the default one. Needs fail() and expect().
PATH=$PATH:/usr/sbin:/sbin

run() {  # TOOL [ARGUMENT…]: what it says
  local said status=0
  said=$(timeout -k 5 60 "${diags[@]}" "$@" 2>&1) || status=$?
  [ "$status" = 0 ] || fail "$*: status $status: $said"
  printf '%s\n' "$said"
}
tree() { cat "$mnt/class/infiniband/$1"; }
# GUIDs as the tools print them: 0x02004cfffe6d6201.
node_guid() { echo "0x$(tree "$1/node_guid" | tr -d :)"; }
port_guid() { echo "0x$(tree "$1/ports/1/gids/0" | cut -d: -f5- | tr -d :)"; }
lid() { printf '%d\n' "$(tree "$1/ports/1/lid")"; }
sm_lid() { printf '%d\n' "$(tree "$1/ports/1/sm_lid")"; }
# The value of a `Name:......value` line on standard input.
dotted() { sed -nE "s/^(# )?$1:\.*//p" | head -n 1; }
field() { sed -nE "s/^[[:space:]]*$1:?[[:space:].]+//p" | head -n 1; }

tools_agree_with_the_tree() {
  local said device
  for device in mb_0 mb_1; do
    said=$(run ibstat $device)
    expect "$(lid $device)" "$(field 'Base lid' <<<"$said")" "ibstat: Base lid of $device"
    expect "$(sm_lid $device)" "$(field 'SM lid' <<<"$said")" "ibstat: SM lid of $device"
    expect "$(node_guid $device)" "$(field 'Node GUID' <<<"$said")" "ibstat: Node GUID of $device"
    expect "$(port_guid $device)" "$(field 'Port GUID' <<<"$said")" "ibstat: Port GUID of $device"
    expect "$(tree $device/ports/1/lid)" "$(run ibstatus $device | field 'base lid')" "ibstatus: base lid of $device"

    said=$(run smpquery nodeinfo "$(lid $device)")
    expect "Channel Adapter 1 $(node_guid $device) $(port_guid $device) 1" \
      "$(dotted NodeType <<<"$said") $(dotted NumPorts <<<"$said") $(dotted Guid <<<"$said") $(dotted PortGuid <<<"$said") $(dotted LocalPort <<<"$said")" \
      "smpquery nodeinfo of $device"
    expect "$(tree $device/node_desc)" "$(run smpquery nodedesc "$(lid $device)" | dotted 'Node Description')" "smpquery nodedesc of $device"
    said=$(run smpquery portinfo "$(lid $device)" 1)
    expect "$(lid $device) $(sm_lid $device) Active LinkUp 4X 4096" \
      "$(for name in Lid SMLid LinkState PhysLinkState LinkWidthActive NeighborMTU; do dotted $name <<<"$said"; done | xargs)" \
      "smpquery portinfo of $device"
  done
  expect "$(node_guid mb_0)" "$(run smpquery -C mb_0 -D nodeinfo 0 | dotted Guid)" "smpquery along a directed route: itself"
  expect "Switch" "$(run smpquery -C mb_0 -D nodeinfo 0,1 | dotted NodeType)" "smpquery along a directed route: the switch"

  said=$(run sminfo)
  [[ $said =~ "sm lid $(sm_lid mb_0) sm guid 0x".*SMINFO_MASTER ]] || fail "sminfo: $said"

  said=$(run saquery -N)
  expect 3 "$(grep -c 'NodeRecord dump' <<<"$said")" "saquery -N: nodes"
  for device in mb_0 mb_1; do
    grep -A 20 "lid\.*0x*$(printf %X "$(lid $device)")$\|lid\.*$(lid $device)$" <<<"$said" |
      grep -q "NodeDescription\.*$(tree $device/node_desc)" || fail "saquery -N: no $device in $said"
    grep -qi "node_guid\.*$(node_guid $device)" <<<"$said" || fail "saquery -N: no $(node_guid $device) in $said"
  done
  expect "$(run saquery -N)" "$(run saquery)" "saquery and saquery -N"
  expect "$said" "$(run saquery -C mb_1 -P 1 -N)" "saquery -C mb_1 -P 1"
  expect 9 "$(run saquery -p | grep -c 'PathRecord dump')" "saquery -p: paths between three ends"
  expect 4 "$(run saquery -x | grep -c 'LinkRecord dump')" "saquery -x: two cables, seen from both ends"
  grep -q "Class version\.*2" <<<"$(run saquery -c)" || fail "saquery -c"
  said=$(run saquery --src-to-dst "$(lid mb_0):$(lid mb_1)")
  grep -qE "dlid\.*(0x)?$(lid mb_1)$" <<<"$said" || fail "saquery --src-to-dst: $said"

  said=$(run iblinkinfo)
  for device in mb_0 mb_1; do
    grep -q "$(lid $device) .*==(.*Active/.*LinkUp)==> *$(sm_lid $device) " <<<"$said" || fail "iblinkinfo: no $device in $said"
  done
  said=$(run ibtracert "$(lid mb_0)" "$(lid mb_1)")
  [[ $said == *"From ca"*"lid $(lid mb_0)"*"To ca"*"lid $(lid mb_1)"* ]] || fail "ibtracert: $said"
}

# perfquery's counters are those of the tree, while nothing moves.
perfquery_agrees() {
  local device said name of
  for device in mb_0 mb_1; do
    said=$(run perfquery -x "$(lid $device)" 1)
    while read -r name of; do
      expect "$(tree $device/ports/1/counters/$of)" "$(dotted "$name" <<<"$said")" "perfquery -x: $name of $device"
    done <<'NAMES'
PortXmitData port_xmit_data
PortRcvData port_rcv_data
PortXmitPkts port_xmit_packets
PortRcvPkts port_rcv_packets
PortUnicastXmitPkts unicast_xmit_packets
PortUnicastRcvPkts unicast_rcv_packets
NAMES
    said=$(run perfquery "$(lid $device)" 1)
    for name in "PortXmitDiscards port_xmit_discards" "LinkDownedCounter link_downed" "PortXmitWait port_xmit_wait"; do
      read -r name of <<<"$name"
      expect "$(tree $device/ports/1/counters/$of)" "$(dotted "$name" <<<"$said")" "perfquery: $name of $device"
    done
  done
}
