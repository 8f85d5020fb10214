#!/bin/bash
# infiniband-diags as they come from the distribution: under rocefs enter, as root and as ordinary
# users; and saqueries that meet the port's limits in real time.
. "$(dirname "$0")/lib/common.bash"
. "$lib/mads.bash"
needs saquery
left_out() { echo "part left out: $*"; }

mounted
diags=("$ROCEFS" enter -m "$mnt" --)
needs_enter

expect 5 "$(cat "$mnt/class/infiniband_mad/abi_version")" "the ABI's version"
expect "umad0 umad1" "$(cd "$mnt/dev/infiniband" && echo umad*)" "umad files"
expect "mb_1 1" "$(cat "$mnt"/class/infiniband_mad/umad1/{ibdev,port} | xargs)" "whose umad1 is"
expect "" "$(timeout 10 cat "$mnt/dev/infiniband/umad0")" "what an umad file tells a reader without agents"

echo "f write mb_0 mb_1 size=64K count=100" >"$debug/traffic/start"
await state_is f "done"
tools_agree_with_the_tree
perfquery_agrees
run perfquery -r "$(lid mb_0)" 1 >/dev/null
expect "0 0" "$(cat "$ib"/mb_0/ports/1/counters/port_{xmit,rcv}_packets | xargs)" "counters after perfquery -r"
perfquery_agrees

# ibping: two programs, an agent of a vendor's class at each end.
"${diags[@]}" ibping -S -C mb_1 >"$dir/ibping" 2>&1 &
server=$!
pings() { "${diags[@]}" ibping -C mb_0 -c 1 -t 500 "$(lid mb_1)" 2>&1 | grep -q "1 received"; }
await pings
expect "5 packets transmitted, 5 received, 0% packet loss" \
  "$(run ibping -C mb_0 -c 5 -f "$(lid mb_1)" | grep -o '^5 packets.*loss')" "ibping"
kill $server
wait $server || true

# A cable that is down: who is behind it does not answer, and is in no table.
echo down >"$debug/links/mb_1-sw_0/state"
timeout 20 "${diags[@]}" smpquery -t 100 nodeinfo "$(lid mb_1)" >"$dir/down" 2>&1 && fail "mb_1 answers through a cable that is down"
expect 2 "$(run saquery -N | grep -c 'NodeRecord dump')" "nodes while mb_1's cable is down"
echo up >"$debug/links/mb_1-sw_0/state"

# 200 saqueries let go at once, an administrator that takes 100 ms: whatever each of them is told is
# counted, and never are more than 16 outstanding.
limits=$ib/mb_0/mad_sa_cc/1
nothing_left() { [ "$(cat "$limits/outstanding" "$limits/queued" | xargs)" = "0 0" ]; }
await nothing_left
echo 100ms >"$debug/sa/delay"
counts() { cat "$limits"/{sent,expired,drops} | xargs; }
# at_once COUNT TIMEOUT_MS: so many saqueries; then $answered, $expired and $refused of them. Whoever was
# not answered was told, and the counters say the same.
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
at_once 200 3000
expect 0 "$gave_up" "sent and not answered"
[ "$answered" -ge 16 ] || fail "only $answered of 200 were answered"
# Where nobody is answered in time, and the queue is left to nobody: however slowly programs start, 16
# are sent, 16 wait, and the others find it full.
echo 10s >"$debug/sa/delay"
echo 10000 >"$limits/time_sa_mad"
at_once 64 8000
[ "$refused" -gt 0 ] || fail "nobody was refused"
expect "0 0" "$answered $expired" "answered and expired"
echo 20 >"$limits/time_sa_mad"
echo 0 >"$limits/drops"
expect 0 "$(cat "$limits/drops")" "drops, reset"
echo 0 >"$debug/sa/delay"
unmounted

$root || { left_out "other users: not root"; exit 0; }
if ! as_user unshare -Urm true 2>/dev/null || [[ $ROCEFS_BUILD == */tsan ]]; then
  left_out "ordinary users: no user namespaces"
  exit 0
fi
user=$dir/user
open_to_users
mkdir -p "$user"/{bin,mnt}
install -m 755 "$ROCEFS" "$user/bin/rocefs"
cp "$lib"/{common,mads,mads_user}.bash "$user"
chown -R 65534:65534 "$user"
use="bash $user/mads_user.bash $user/bin/rocefs"

mounted -o allow_other
expect "done" "$(as_user $use "$mnt" 2>&1)" "an ordinary user in root's mount"
unmounted

fuse="mknod $dir/fuse c 10 229; chmod 666 $dir/fuse; mount --bind $dir/fuse /dev/fuse; rm $dir/fuse;
  nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups \"\$@\"; };"
if [ -u "$(command -v fusermount3)" ] && [ -e /etc/mtab ]; then
  expect "done" "$(unshare -m bash -c "$fuse nobody $use $user/mnt" 2>&1)" "an ordinary user's own mount"
else
  left_out "an ordinary user's own mount: fusermount3 is not setuid"
fi
expect "done" "$(unshare -m bash -c "$fuse nobody unshare -Urm $use $user/mnt" 2>&1)" "the root of a user namespace"
