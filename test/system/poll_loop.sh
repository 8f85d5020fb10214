#!/bin/bash
# What the packet core's I/O is for, with polls instead of io_uring: uplinks, interfaces of hosts, doorbells, sleep.
. "$(dirname "$0")/lib/common.bash"
export ROCEFS_LOOP=poll
address=127.95.$(($$ / 250 % 250)).$(($$ % 250 + 1)) peer=127.96.$(($$ / 250 % 250)).$(($$ % 250 + 1))
far=$dir/far
ends_far() { fusermount3 -u "$far" 2>/dev/null || umount -l "$far" 2>/dev/null || true; }
ticks() { awk '{sum += $14 + $15} END {print sum}' "/proc/$(daemon_pid)/stat" "/proc/$(worker_pid)/stat"; }

test_case "a file crosses an uplink, single packets and batches"
mkdir -p "$far"
at_end ends_far
mounted -o uplink="$address"
"$ROCEFS" -o uplink="$peer" "$far" >/dev/null
head -c 3000000 /dev/urandom >"$dir/file"
for gso in 0 1; do
  echo $gso >"$debug/uplinks/uplink/gso"
  echo $gso >"$far/kernel/debug/rocefs/uplinks/uplink/gso"
  echo "f$gso accept mb_0 out=$dir/copy$gso" >"$far/kernel/debug/rocefs/traffic/start"
  echo "f$gso write mb_0 $peer file=$dir/file" >"$debug/traffic/start"
  await state_is f$gso "done"
  cmp "$dir/file" "$dir/copy$gso" || fail "another file, gso $gso"
done
expect "poll poll" "$(cat {"$mnt","$far"}/kernel/debug/rocefs/loop | xargs)" "the loops"
[ "$(<"$debug/uplinks/uplink/tx_packets")" -gt 1400 ] || fail "only $(<"$debug/uplinks/uplink/tx_packets") packets"
[ "$(<"$debug/uplinks/uplink/tx_batches")" -gt 0 ] || fail "no batches"

test_case "TCP between hosts takes the cables, and a host that was ended comes back"
needs ip python3
[ -e /dev/net/tun ] || skip "no /dev/net/tun here"
[[ $ROCEFS_BUILD != */tsan ]] || skip "the thread of ThreadSanitizer is one too many for setns(2)"
mounted
"$ROCEFS" host -m "$mnt" mb_0 true 2>"$dir/why" || skip "no hosts here: $(cat "$dir/why")"
on() { timeout -k 5 60 "$ROCEFS" host -m "$mnt" "$@"; }  # HOST COMMAND…
listens() { on mb_1 "ss -Hltn 'sport = :7000'" | grep -q .; }
for round in 1 2; do
  on mb_1 -- python3 -c 'import socket, sys
taken, _ = socket.create_server(("", 7000)).accept()
while data := taken.recv(1 << 16): sys.stdout.buffer.write(data)' >"$dir/heard$round" &
  await listens
  on mb_0 -- python3 -c 'import socket, sys
socket.create_connection(("mb_1", 7000)).sendall(sys.stdin.buffer.read())' <"$dir/file"
  wait $!
  cmp "$dir/file" "$dir/heard$round" || fail "other octets, round $round"
  [ "$round" = 2 ] || kill_worker
done

test_case "an idle daemon with an uplink, hosts and a program that waits uses no CPU"
needs ibv_rc_pingpong
needs_provider
mounted -o uplink="$address"
needs_enter
"$ROCEFS" host -m "$mnt" mb_0 true 2>/dev/null || true
echo "f write mb_0 mb_1 count=100" >"$debug/traffic/start"
await state_is f "done"
timeout 30 "$ROCEFS" enter -m "$mnt" -- ibv_rc_pingpong -d mb_0 -g 1 >/dev/null 2>&1 &  # its bell has rung
program=$!
at_end kill $program
await grep -q ' qp ' "$debug/resources"
timeout 1 tail -f /dev/null || true  # the interfaces of hosts come up
before=$(ticks)
timeout 3 tail -f /dev/null || true
used=$(($(ticks) - before))
[ $used -le 1 ] || fail "$used ticks in 3 s while idle"
