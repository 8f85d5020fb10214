#!/bin/bash
# infiniband-diags as they come from the distribution: under rocefs enter, as root and as ordinary
# users; and saqueries that meet the port's limits in real time.
. "$(dirname "$0")/lib/common.bash"
lib=$(realpath "$(dirname "$0")/lib")
. "$lib/mads.bash"
command -v saquery >/dev/null || { echo "no saquery (infiniband-diags)"; exit 77; }
root=false
[ "$(id -u)" -ne 0 ] || root=true
left_out() { echo "part left out: $*"; }
as_user() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }

mounted
diags=("$ROCEFS" enter -m "$mnt" --)
if ! "${diags[@]}" true 2>"$dir/why"; then echo "nobody can enter: $(cat "$dir/why")"; exit 77; fi

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
read -r sent expired drops <<<"$(counts)"
mkfifo "$dir/gate"
"${diags[@]}" bash -c 'cd "$1"; exec 9<>gate; for i in {1..200}; do
    ( read -r _ <gate 2>/dev/null; saquery -C mb_0 -P 1 -t 3000 -c >said.$i 2>&1 9>&-; echo "status $?" >>said.$i ) &
    echo $! >>started
  done; touch ready; wait' bash "$dir" &
burst=$!
is_ready() { [ -e "$dir/ready" ]; }
await is_ready
exec 8>"$dir/gate"
printf 'go\n%.0s' {1..200} >&8
most=0
while kill -0 $burst 2>/dev/null; do
  now=$(cat "$limits/outstanding")
  [ "$now" -le "$most" ] || most=$now
done
wait $burst || true
exec 8>&-
await nothing_left
[ "$most" -le 16 ] || fail "$most were outstanding"
read -r sent_now expired_now drops_now <<<"$(counts)"
answered=$(grep -l "Class version" "$dir"/said.* | wc -l)
[ "$answered" -ge 16 ] || fail "only $answered of 200 were answered"
echo "REPORT 200 saqueries at once: $answered answered, $((expired_now - expired)) expired, $((drops_now - drops)) refused, at most $most outstanding"
expect 200 $((sent_now - sent + expired_now - expired + drops_now - drops)) "sent, expired and refused"
expect "$answered" $((sent_now - sent)) "answered and sent"
expect $((200 - answered)) "$(grep -L "Class version" "$dir"/said.* | xargs grep -lE 'status [1-9]' | wc -l)" "programs that were told"
echo 0 >"$limits/drops"
expect 0 "$(cat "$limits/drops")" "drops, reset"
echo 0 >"$debug/sa/delay"
unmount
await gone

$root || { left_out "other users: not root"; exit 0; }
if ! as_user unshare -Urm true 2>/dev/null || [[ $ROCEFS_BUILD == */tsan ]]; then
  left_out "ordinary users: no user namespaces"
  exit 0
fi
user=$dir/user
chmod 711 "$dir" "$(dirname "$dir")"
mkdir -p "$user"/{bin,mnt}
install -m 755 "$ROCEFS" "$user/bin/rocefs"
cp "$lib"/{common,mads,mads_user}.bash "$user"
chown -R 65534:65534 "$user"
use="bash $user/mads_user.bash $user/bin/rocefs"

mounted -o allow_other
expect "done" "$(as_user $use "$mnt" 2>&1)" "an ordinary user in root's mount"
unmount
await gone

fuse="mknod $dir/fuse c 10 229; chmod 666 $dir/fuse; mount --bind $dir/fuse /dev/fuse; rm $dir/fuse;
  nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups \"\$@\"; };"
if [ -u "$(command -v fusermount3)" ] && [ -e /etc/mtab ]; then
  expect "done" "$(unshare -m bash -c "$fuse nobody $use $user/mnt" 2>&1)" "an ordinary user's own mount"
else
  left_out "an ordinary user's own mount: fusermount3 is not setuid"
fi
expect "done" "$(unshare -m bash -c "$fuse nobody unshare -Urm $use $user/mnt" 2>&1)" "the root of a user namespace"
