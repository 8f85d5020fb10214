#!/bin/bash
# infiniband-diags as they come from the distribution: under rocefs enter, as root and as ordinary
# users; and saqueries that meet the port's limits in real time.
. "$(dirname "$0")/lib/common.bash"
. "$lib/mads.bash"
needs saquery

mounted
diags=("$ROCEFS" enter -m "$mnt" --)
needs_enter

# Programs and scripts that an ordinary user can reach.
home=$dir/user
use="bash $home/mads_user.bash $home/bin/rocefs"
needs_other_users() {
  needs_root
  needs_user_namespaces
  [ ! -e "$home" ] || return 0
  open_to_users
  mkdir -p "$home"/{bin,mnt}
  install -m 755 "$ROCEFS" "$home/bin/rocefs"
  cp "$lib"/*.bash "$home"
  chown -R 65534:65534 "$home"
}
# at_once COUNT TIMEOUT_MS: starts that many saqueries and sets $answered, $expired and $refused. Each program
# was told its outcome, and the counters agree.
at_once() {
  local sent expired_before drops sent_now expired_now drops_now burst most=0 now at="$dir/at_once.$1"
  mkdir "$at"
  mkfifo "$at/gate"
  read -r sent expired_before drops <<<"$(counts)"
  "${diags[@]}" bash -c 'cd "$1"; exec 9<>gate; for ((i = 0; i < $2; i++)); do
      ( read -r _ <gate 2>/dev/null; saquery -C mb_0 -P 1 -t $3 -c >said.$i 2>&1 9>&-; echo "status $?" >>said.$i ) &
    done; touch ready; wait' bash "$at" "$1" "$2" &
  burst=$!
  is_ready() { [ -e "$at/ready" ]; }
  await is_ready
  exec 8>"$at/gate"
  for ((i = 0; i < $1; i++)); do echo go >&8; done
  while kill -0 $burst 2>/dev/null; do
    now=$(cat "$limits/outstanding")
    [ "$now" -le "$most" ] || most=$now
  done
  wait $burst || true
  exec 8>&-
  await nothing_left
  [ "$most" -le 16 ] || fail "$most were outstanding"
  read -r sent_now expired_now drops_now <<<"$(counts)"
  answered=$({ grep -l "Class version" "$at"/said.* || true; } | wc -l)
  expired=$((expired_now - expired_before)) refused=$((drops_now - drops))
  echo "REPORT $1 saqueries at once: $answered answered, $expired expired, $refused refused, at most $most outstanding"
  expect "$1" $((sent_now - sent + expired + refused)) "sent, expired and refused"
  expect $(($1 - answered)) "$(grep -L "Class version" "$at"/said.* | xargs grep -lE 'status [1-9]' | wc -l)" "programs that were told"
  gave_up=$((sent_now - sent - answered))
}
counts() { cat "$limits"/{sent,expired,drops} | xargs; }
limits=$ib/mb_0/mad_sa_cc/1
nothing_left() { [ "$(cat "$limits/outstanding" "$limits/queued" | xargs)" = "0 0" ]; }

test_case "umad files exist, and return nothing without agents"
expect 5 "$(cat "$mnt/class/infiniband_mad/abi_version")" "the ABI's version"
expect "umad0 umad1" "$(cd "$mnt/dev/infiniband" && echo umad*)" "umad files"
expect "mb_1 1" "$(cat "$mnt"/class/infiniband_mad/umad1/{ibdev,port} | xargs)" "whose umad1 is"
expect "" "$(timeout 10 cat "$mnt/dev/infiniband/umad0")" "what an umad file tells a reader without agents"

test_case "infiniband-diags show what the tree shows"
echo "f write mb_0 mb_1 size=64K count=100" >"$debug/traffic/start"
await state_is f "done"
tools_agree_with_the_tree
perfquery_agrees
run perfquery -r "$(lid mb_0)" 1 >/dev/null
expect "0 0" "$(cat "$ib"/mb_0/ports/1/counters/port_{xmit,rcv}_packets | xargs)" "counters after perfquery -r"
perfquery_agrees

test_case "ibping gets an answer to each ping"
"${diags[@]}" ibping -S -C mb_1 >"$dir/ibping" 2>&1 &
server=$!
pings() { "${diags[@]}" ibping -C mb_0 -c 1 -t 500 "$(lid mb_1)" 2>&1 | grep -q "1 received"; }
await pings
expect "5 packets transmitted, 5 received, 0% packet loss" \
  "$(run ibping -C mb_0 -c 5 -f "$(lid mb_1)" | grep -o '^5 packets.*loss')" "ibping"
kill $server
wait $server || true

test_case "a device behind a failed cable does not answer and is in no table"
echo down >"$debug/links/mb_1-sw_0/state"
timeout 20 "${diags[@]}" smpquery -t 100 nodeinfo "$(lid mb_1)" >"$dir/down" 2>&1 && fail "mb_1 answers through a cable that is down"
expect 2 "$(run saquery -N | grep -c 'NodeRecord dump')" "nodes while mb_1's cable is down"
echo up >"$debug/links/mb_1-sw_0/state"

test_case "concurrent saqueries are counted and never exceed the limit"
# 200 saqueries started at once, and an administrator that answers after 100 ms: each outcome is counted, and
# at most 16 are outstanding.
await nothing_left
echo 100ms >"$debug/sa/delay"
at_once 200 3000
expect 0 "$gave_up" "sent and not answered"
[ "$answered" -ge 16 ] || fail "only $answered of 200 were answered"

test_case "requests beyond the queue are refused"
# If no request is answered in time and no queued one is sent: however slowly programs start, 16 are sent,
# 16 wait, and the others find the queue full.
echo 10s >"$debug/sa/delay"
echo 10000 >"$limits/time_sa_mad"
at_once 64 8000
[ "$refused" -gt 0 ] || fail "nobody was refused"
expect "0 0" "$answered $expired" "answered and expired"
echo 20 >"$limits/time_sa_mad"
echo 0 >"$limits/drops"
expect 0 "$(cat "$limits/drops")" "drops, reset"
echo 0 >"$debug/sa/delay"

test_case "an ordinary user uses the tools in root's mount"
needs_other_users
mounted -o allow_other
expect "done" "$(as_user $use "$mnt" 2>&1)" "an ordinary user in root's mount"
unmounted

test_case "an ordinary user uses the tools in his own mount"
needs_other_users
needs_setuid_fusermount
expect "done" "$(as_mounter $use "$home/mnt" 2>&1)" "an ordinary user's own mount"

test_case "the root of a user namespace uses the tools in his mount"
needs_other_users
expect "done" "$(as_mounter unshare -Urm $use "$home/mnt" 2>&1)" "the root of a user namespace"
