#!/bin/bash
# The ini file: a custom topology and initial values of knobs; an error has file, line and reason,
# exit status 2, and mounts nothing.
. "$(dirname "$0")/lib/common.bash"
ini=$dir/net.ini
ecn=kernel/debug/rocefs/fabric/sw_0/ecn
refused() {  # TEXT LINE REASON
  printf '%b' "$1" >"$ini"
  local said status=0
  said=$("$ROCEFS" -o config="$ini" "$mnt" 2>&1) || status=$?
  expect 2 "$status" "exit of: $1"
  expect "rocefs: $ini:$2: $3" "$said" "reason of: $1"
  mountpoint -q "$mnt" && fail "mounted all the same"
  return 0
}

cat >"$ini" <<'INI'
; two NICs, cabled back to back
[clock]
mode = virtual
seed = 42
[device left]
ip = 192.168.7.1
ip6 = 2001:db8::1
netdev = eth7
[device right]
mtu = 1024
[link left right]
rate = 100G
delay = 2us
[knobs]
kernel/debug/rocefs/links/left-right/loss = 0.125
class/infiniband/left/node_desc = the left one
INI

test_case "an ini file sets the topology and initial values"
mounted -o config="$ini"
expect "left right" "$(ls "$ib" | xargs)" "devices"
expect "100 Gb/sec (4X EDR)" "$(cat "$ib/left/ports/1/rate")" "rate"
expect "0.125" "$(cat "$debug/links/left-right/loss")" "start value"
expect "0" "$(cat "$debug/links/right-left/loss")" "the other direction"
expect "the left one" "$(cat "$ib/left/node_desc")" "node_desc"
expect "0000:0000:0000:0000:0000:ffff:c0a8:0701" "$(cat "$ib/left/ports/1/gids/1")" "gid 1"
expect "2001:0db8:0000:0000:0000:0000:0000:0001" "$(cat "$ib/left/ports/1/gids/2")" "gid 2"
expect "real [virtual]" "$(cat "$debug/clock/mode")" "clock"
expect 42 "$(cat "$debug/seed")" "seed"

test_case "a flow crosses a configured cable"
echo "f write left right size=10000 count=20 timeout=5" >"$debug/traffic/start"
echo idle >"$debug/clock/advance"
expect "done" "$(cat "$debug/traffic/f/state")" "flow"

test_case "errors have file, line and reason"
unmounted
refused '[device a]\nspeed = 1\n' 2 'unknown key speed in [device]: pci, host, ports, netdev, mac, ip, ip6 or mtu is wanted'
refused '[moon a]\n' 1 'unknown section [moon a]: clock, nic, topology, device NAME, port NAME 2, switch NAME, uplink NAME, link A B, knobs, sim, flows, load NAME, at, inject, sample, plot or variant NAME is wanted'
refused '\n\nnonsense\n' 3 'not a [section], key = value or comment'
refused 'rate = 1\n' 1 'rate comes before any section'
refused '[device a]\n[device a]\n' 2 'a exists already'
refused '[device a]\nmtu = 1500\n' 2 'mtu=1500: 256, 512, 1024, 2048 or 4096 is wanted'
refused '[device a]\nip = 1.2.3\n' 2 'ip=1.2.3: an IPv4 address is wanted'
refused '[device a]\nmtu = 1024\nmtu = 1024\n' 3 'mtu is given twice'
refused '[device a]\n[switch s]\n[link a s]\nrate = 10X\n' 4 "rate: '10X': a rate such as 10G or 2.5G is wanted"
refused '[device a]\n[switch s]\n[link a s]\nloss = 2\n' 4 "loss: '2' is outside 0 to 1"
refused '[device a]\n[link a b]\n' 2 'no device, switch or uplink b'
refused '[device a]\n' 1 'a has no link'
refused '[device a]\n[switch s]\n[switch t]\n[link a s]\n[link a t]\n' 5 'the port of a has its cable already'
refused '[device a]\n[device b]\nip = 10.77.0.1\n[link a b]\n' 2 'b has the ip of another port'
refused '[knobs]\nclass/nothing = 1\n' 2 'class/nothing: no knob has this path'
refused '[knobs]\nkernel/debug/rocefs/links/mb_0-sw_0/loss = 7\n' 2 "kernel/debug/rocefs/links/mb_0-sw_0/loss: '7' is outside 0 to 1"
refused "[knobs]\n$ecn/kmin = 3M\n" 2 "$ecn/kmin: ecn/kmin 3145728 is above ecn/kmax 204800"
refused "[knobs]\n$ecn/kmax = 4M\n$ecn/pmax = 7\n$ecn/kmin = 3M\n" 3 "$ecn/pmax: '7' is outside 0 to 1"
refused "[knobs]\nclass/infiniband/mb_?/cfr/enable = maybe\n" 2 "class/infiniband/mb_?/cfr/enable: class/infiniband/mb_0/cfr/enable: 'maybe' is neither 1 nor 0"
refused "[device a]\nnetdev = $(printf 'x%.0s' $(seq 300))\n" 2 'longer than 197 characters'
refused '[clock]\nmode = virtual\ndilation = 3\n' 3 'dilation requires the real clock'
refused '[clock]\nmode = virtual\n[device a]\n[uplink u]\n[link a u]\n' 4 "uplink u: the kernel's network needs the real clock"
refused '[device a/b]\n' 1 "'a/b' cannot be a name"

test_case "knobs that are valid together alone are taken in any order, and the last line of a knob counts"
for lines in "sw_0/ecn/kmin = 3M|sw_0/ecn/kmax = 4M" "sw_0/ecn/kmax = 4M|sw_0/ecn/kmin = 3M" \
  "sw_?/ecn/kmin = 1K|*/ecn/kmax = 2K|sw_0/ecn/kmin = 3M|sw_0/ecn/kmax = 4M"; do
  { echo "[knobs]"; tr '|' '\n' <<<"$lines" | sed "s|^|${ecn%/sw_0/ecn}/|"; } >"$dir/together.ini"
  mounted -o clock=virtual,config="$dir/together.ini"
  expect "3M 4M" "$(cat "$mnt/$ecn"/{kmin,kmax} | xargs)" "$lines"
  echo 5M >"$mnt/$ecn/kmax"
  echo 1 >"$debug/reset"
  expect "3M 4M" "$(cat "$mnt/$ecn"/{kmin,kmax} | xargs)" "after a reset"
  unmounted
done

test_case "a reset keeps what a knob of [knobs] has brought with it, though nobody has looked for it"
for semantics in "doc ofed25" "ofed25 doc" "doc ofed4"; do
  read -r nic knob <<<"$semantics"
  printf '[nic]\nmad_semantics = %s\n[knobs]\nkernel/debug/rocefs/sa/semantics = %s\n' "$nic" "$knob" >"$dir/semantics.ini"
  printf '[nic]\nmad_semantics = %s\n' "$knob" >"$dir/plain.ini"
  for ini in plain semantics; do
    mounted -o clock=virtual,config="$dir/$ini.ini"
    expect ok "$(store 1 "$debug/reset")" "reset: $semantics"
    cat "$debug/sa/semantics" "$ib"/mb_*/mad_sa_cc/1/{max_outstanding,queue_size,time_sa_mad} >"$dir/$ini.limits"
    unmounted
  done
  cmp "$dir/plain.limits" "$dir/semantics.limits" || fail "$semantics: $(xargs <"$dir/plain.limits"), and now $(xargs <"$dir/semantics.limits")"
done

test_case "an unreadable ini file is reported"
status=0
said=$("$ROCEFS" -o config="$dir/none.ini" "$mnt" 2>&1) || status=$?
expect "2 rocefs: $dir/none.ini: No such file or directory" "$status $said" "a file that is not there"
status=0
said=$("$ROCEFS" -o config="$dir" "$mnt" 2>&1) || status=$?
expect "2 rocefs: $dir: Is a directory" "$status $said" "a directory"
