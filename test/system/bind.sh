#!/bin/bash
# A host's mount in containers, without a container engine: mount namespaces with a slave of the directory
# above the mount point see a restarted rocefs; a bind of the mount point itself keeps the dead mount,
# and is not recommended.
. "$(dirname "$0")/lib/common.bash"
needs_root "mount namespaces need root here"
unshare -m true 2>/dev/null || skip "no mount namespaces"

host=$dir/host
nic=$host/nic
mkdir -p "$nic" "$dir/in/volume"
clean() {
  for pid in ${pids[@]+"${pids[@]}"}; do kill "$pid" 2>/dev/null || true; done
  umount -l "$nic" 2>/dev/null || true
  umount -l "$host" 2>/dev/null || true
}
pids=()
at_end clean
mount --bind "$host" "$host"
mount --make-shared "$host"
ended() { ! pgrep -f "^$ROCEFS $nic\$" -r S,R,D >/dev/null; }
start() { "$ROCEFS" "$nic" >/dev/null 2>"$dir/said" || fail "$(cat "$dir/said")"; }
value=kernel/debug/rocefs/links/mb_0-sw_0/loss

# container: a mount namespace with a view of SOURCE at $dir/in/volume, as an engine makes it; `inside`
# runs a command there.
declare -A container
container() {  # NAME SOURCE WAY
  unshare -m --propagation slave bash -c 'mount --rbind "$1" "$2" && mount --make-"$3" "$2" && echo up >"$4" &&
    exec sleep 1000' sh "$2" "$dir/in/volume" "$3" "$dir/up-$1" &
  container[$1]=$!
  pids+=($!)
  await test -s "$dir/up-$1"
}
inside() { nsenter -t "${container[$1]}" -m "${@:2}"; }
reads() { LC_ALL=C inside "$1" cat "$dir/in/volume/$2$value" 2>&1 | sed 's/.*: //'; }
first=nic/ itself=
dead="Transport endpoint is not connected"

container early "$host" rslave       # before there is a mount
start
echo 0.125 >"$nic/$value"
container late "$host" rslave
container private "$host" rprivate
container pinned "$nic" rprivate     # what `-v /srv/nics/a:/nic` makes

test_case "each container sees the mount at first"
for name in early late private; do expect 0.125 "$(reads $name $first)" "$name, at first"; done
expect 0.125 "$(reads pinned "$itself")" "pinned, at first"

test_case "a store from inside a container takes effect"
inside late bash -c 'echo 0.25 >"$1"' sh "$dir/in/volume/nic/$value"
expect 0.25 "$(cat "$nic/$value")" "stored from inside"

test_case "containers do not notice a takeover"
worker=$(pgrep -P "$(pgrep -of "^$ROCEFS $nic\$" -r S,R,D)" | head -n 1)
kill -KILL "$worker"
for name in early late; do expect 0.25 "$(reads $name $first)" "$name, after a takeover"; done
expect 0.25 "$(reads pinned "$itself")" "pinned, after a takeover"

test_case "after an orderly end a slave mount follows to the next mount"
# A restart after an orderly end: a slave follows; a private view, and a bind of the mount itself, keep
# the dead mount.
kill -TERM "$(pgrep -of "^$ROCEFS $nic\$" -r S,R,D)"
await ended
for name in early late; do expect "No such file or directory" "$(reads $name $first)" "$name, without a mount"; done
start
echo 0.5 >"$nic/$value"
for name in early late; do expect 0.5 "$(reads $name $first)" "$name, of the second mount"; done
expect "$dead" "$(reads private $first)" "a private view"
expect "$dead" "$(reads pinned "$itself")" "a bind of the mount point"

test_case "after a kill a slave mount follows to the next mount"
container pinned2 "$nic" rprivate
at_end kill "${container[pinned2]}"
expect 0.5 "$(reads pinned2 "$itself")" "pinned to the second mount"
supervisor=$(pgrep -of "^$ROCEFS $nic\$" -r S,R,D)
kill_all "$nic"
await ended
for name in early late; do expect "$dead" "$(reads $name $first)" "$name, of the dead mount"; done
start
grep -q "unmounting the dead mount" "$dir/said" || fail "the dead mount was not told of"
echo 0.75 >"$nic/$value"
for name in early late; do
  expect 0.75 "$(reads $name $first)" "$name, of the third mount"
  expect 1 "$(inside $name awk -v at="$dir/in/volume/nic" '$5 == at' /proc/self/mountinfo | wc -l)" "mounts that $name sees"
done
expect "$dead" "$(reads pinned2 "$itself")" "pinned to a mount that has died"
expect 0.75 "$(cat "$nic/$value")" "on the host"

test_case "rocefs enter works in a container, at a mount that came later"
expect "mb_0 mb_1" "$(inside late "$ROCEFS" enter -m "$dir/in/volume/nic" sh -c 'echo $(ls /sys/class/infiniband)')" "enter"

test_case "two programs in two containers talk to each other"
needs ibv_rc_pingpong
needs_provider
pingpong() {  # CONTAINER ARGUMENT…
  inside "$1" unshare --pid --fork --mount-proc "$ROCEFS" enter -m "$dir/in/volume/nic" -- ibv_rc_pingpong -g 1 -n 50 -p 18471 "${@:2}"
}
echo 0 >"$nic/$value"
pingpong early -d mb_0 >"$dir/server" 2>&1 &
meets() { pingpong late -d mb_1 localhost >"$dir/client" 2>&1; }
await meets
wait $! || fail "the server: $(cat "$dir/server")"
grep -q "^50 iters" "$dir/client" || fail "the client: $(cat "$dir/client")"

test_case "the host's mount also ends in its containers"
umount "$nic"
await ended
