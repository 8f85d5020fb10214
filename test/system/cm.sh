#!/bin/bash
# Programs of librdmacm as they come from the distribution: within a mount, and between two mounts in
# two network namespaces that veth joins.
lib=$(realpath "$(dirname "$0")/lib")
. "$lib/two_mounts.bash"
if [ "${1:-}" != inside ]; then
  command -v rping >/dev/null || { echo "no rping (rdmacm-utils)"; exit 77; }
  has_namespaces python3
  exec "${spaces[@]}" "$0" inside
fi

. "$lib/common.bash"
joined_namespaces
mounted -o uplink=10.9.0.1
far_mounted -o uplink=10.9.0.2
near=("$ROCEFS" enter -m "$mnt" --)
afar=(nsenter -t $there -n "$ROCEFS" enter -m "$far" --)
port=7400

ids() { cat "$1/kernel/debug/rocefs/cm_ids"; }
listens() { ids "$mnt" | grep -q ":$port .*state=listen" || ! kill -0 "$server" 2>/dev/null; }
connected() { ids "$far" | grep -q state=connect; }
no_ids() { [ -z "$(ids "$mnt")$(ids "$far")" ]; }
serve() {  # COMMAND…: on the near mount, as $server
  timeout -k 5 60 "${near[@]}" "$@" >"$dir/server" 2>&1 &
  server=$!
  await listens
}
both() { for end in server client; do echo "$end: $(tail -n 5 "$dir/$end" | cut -c -200)"; done; }
ask() {  # COMMAND…
  local status=0
  timeout -k 5 60 "$@" >"$dir/client" 2>&1 || status=$?
  [ $status -eq 0 ] || left_its_channel $status || fail "$*: status $status"$'\n'"$(both)"
}
# An older rping client (rdma-core 44) destroys, after its last ping, the channel on which its thread may still
# wait; an earlier failure would have been printed.
left_its_channel() {  # STATUS
  [ "$1" -eq 255 ] && grep -qx "rdma_get_cm_event: Bad file descriptor" "$dir/client" &&
    ! grep -qvx -e "client DISCONNECT EVENT..." -e "rdma_get_cm_event: Bad file descriptor" "$dir/client"
}
served() {
  local status=0
  wait "$server" || status=$?
  [ $status -eq 0 ] || fail "the server: status $status"$'\n'"$(both)"
}
counter() { cat "$1/class/infiniband/mb_0/ports/1/$2"; }

# Runs each pair of programs, the client by the given command: it connects to the server's address.
pairs() {  # ADDRESS COMMAND…
  local to=$1 begun=$port
  shift
  port=$((port + 1))
  serve rping -s -p $port -C 10 -S 200 -v
  ask "$@" rping -c -a "$to" -p $port -C 10 -S 200 -v
  expect 10 "$(grep -c '^ping data: rdma-ping' "$dir/client")" "rping's pings"
  served
  port=$((port + 1))
  serve ucmatose -p $port -c 4 -C 5
  ask "$@" ucmatose -s "$to" -p $port -c 4 -C 5
  grep -q "return status 0" "$dir/client" || fail "ucmatose: $(both)"
  served
  port=7174  # its only one
  serve udaddy -c 2 -C 5
  ask "$@" udaddy -s "$to" -c 2 -C 5
  served
  port=$((begun + 5))
  serve rdma_server -p $port
  ask "$@" rdma_client -s "$to" -p $port
  served
}
perftest() {  # TOOL ADDRESS COMMAND…
  local tool=$1 to=$2
  shift 2
  port=$((port + 1))
  serve "$tool" -R -p $port -n 100
  ask "$@" "$tool" -R -p $port -n 100 "$to"
  grep -qE '^ 65536 +100 ' "$dir/client" || fail "$tool: $(both)"
  served
}
mb_1=$(sed 's/.*ffff://' "$ib/mb_1/ports/1/gids/1")
mb_1=$((0x${mb_1:0:2})).$((0x${mb_1:2:2})).$((0x${mb_1:5:2})).$((0x${mb_1:7:2}))

test_case "programs of librdmacm connect within a mount"
pairs "$mb_1" "${near[@]}"
perftest ib_send_bw "$mb_1" "${near[@]}"

test_case "programs of librdmacm connect between two mounts"
pairs 10.9.0.1 "${afar[@]}"
perftest ib_write_bw 10.9.0.1 "${afar[@]}"

test_case "a persistent server takes one client after another, and clients notice its death"
port=$((port + 1))
serve rping -s -P -p $port
for to in "$mb_1" 10.9.0.1; do
  for _ in 1 2 3; do ask "${near[@]}" rping -c -a "$to" -p $port -C 2; done
done
ask "${afar[@]}" rping -c -a 10.9.0.1 -p $port -C 2
# The server dies: a connected client is told, and both leave nothing behind.
timeout -k 5 60 "${afar[@]}" rping -c -a 10.9.0.1 -p $port -C 1000000 >"$dir/client" 2>&1 &
client=$!
await connected
pkill -KILL -P "$server"
wait "$server" "$client" || true
await no_ids

test_case "a program is told when its worker dies, and a new connection works at once"
# The worker dies during a connection: programs with a channel to it are told at once. The far end may wait
# for a message, as for a machine without power. The next connection does not have to wait.
port=$((port + 1))
serve rping -s -p $port -C 1000000
timeout -k 5 60 "${afar[@]}" rping -c -a 10.9.0.1 -p $port -C 1000000 >"$dir/client" 2>&1 &
client=$!
await connected
kill -KILL "$(worker_pid)"
status=0
wait "$server" || status=$?
case $status in 0|124|137) fail "a worker that died: status $status"$'\n'"$(both)" ;; esac
grep -qE "Failed to get cq event|Input/output error" "$dir/server" || fail "a worker that died: $(both)"
kill $client
wait $client || true
await no_ids
port=$((port + 1))
serve rping -s -p $port -C 2
ask "${afar[@]}" rping -c -a 10.9.0.1 -p $port -C 2
served

test_case "a thread that waits for events while another one closes the channel goes on waiting"
closes=("${near[@]}" python3 "$lib/cm_closes.py" "$mb_1" 500)
timeout -k 5 60 "${closes[@]}" >"$dir/closes" 2>&1 || fail "$(tail -n 5 "$dir/closes")"
await no_ids

test_case "a thread may be cancelled while it waits for events, and is not in any other command"
"${CC:-cc}" -O1 -Wall -pthread -o "$dir/cm_rules" "$lib/cm_rules.c" -l:librdmacm.so.1
rules() { timeout -k 5 60 "${near[@]}" "$dir/cm_rules" "$1" >"$dir/rules" 2>&1 || fail "$1: $(cat "$dir/rules")"; }
rules waiters
rules command
await no_ids

test_case "a child of fork() is refused its parent's channel, and may open one of its own"
rules children
await no_ids

test_case "a client is rejected if nobody listens"
# The rejection arrives before the first REQ would be sent again.
if timeout 20 "${afar[@]}" rping -c -a 10.9.0.1 -p 1 -C 1 >"$dir/client" 2>&1; then fail "nobody listens, and yet"; fi
grep -q "RDMA_CM_EVENT_REJECTED" "$dir/client" || fail "rejected: $(cat "$dir/client")"
[ "$(counter "$far" cm_rx_msgs/rej)" -gt 0 ] || fail "no REJ was counted"
expect 0 "$(counter "$mnt" hw_counters/rx_mads_discarded)" "MADs that were none"
