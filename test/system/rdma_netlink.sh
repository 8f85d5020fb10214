#!/bin/bash
# RDMA netlink under `rocefs enter` and `rocefs host`: iproute2's rdma, static programs with threads,
# and what the answers are made of.
. "$(dirname "$0")/lib/common.bash"
. "$lib/verbs.bash"
needs rdma
logs=$dir
mounted
needs_enter
inside() { timeout -k 5 60 "$ROCEFS" enter -m "$mnt" -- "$@"; }
[[ $(inside rdma dev) == *mb_0* ]] || skip "no user notifications of seccomp here: $(inside rdma dev 2>&1)"
verbs=("$ROCEFS" enter -m "$mnt" --)

test_case "devices, links and the system are those of the tree"
expect "mb_0 mb_1" "$(inside rdma dev | awk '{print $2}' | tr -d : | xargs)" "rdma dev"
expect "$(cat "$ib/mb_1/node_guid") $(cat "$ib/mb_1/fw_ver")" \
  "$(inside rdma dev show mb_1 | sed -E 's/.* fw ([^ ]+) node_guid ([^ ]+) .*/\2 \1/')" "rdma dev show mb_1"
for device in mb_0 mb_1; do
  expect "link $device/1 state ACTIVE physical_state LINK_UP netdev $(ls "$ib/$device/device/net")" "$(inside rdma link show $device/1 | xargs)" "rdma link"
done
echo down >"$debug/links/mb_0-sw_0/state"
expect "link mb_0/1 state DOWN" "$(inside rdma link show mb_0/1 | grep -o '.*state DOWN')" "rdma link of a dead cable"
echo up >"$debug/links/mb_0-sw_0/state"
needs ibv_devinfo
needs_provider
expect "$(inside ibv_devinfo -v -d mb_0 | sed -n '/device_cap_flags:/,/:.*[0-9]$/s/^\t*\([A-Z_0-9]*\)$/\1/p' | sort | xargs)" \
  "$(inside rdma -d dev show mb_0 | sed -n 's/.*caps: <\(.*\)>/\1/p' | tr -d , | xargs -n 1 | grep -v '^UNKNOWN$' | sort | xargs)" "capabilities"
[[ $(inside rdma system) == *"netns shared"* ]] || fail "rdma system: $(inside rdma system)"

test_case "statistics are the port's hw_counters"
echo "f write mb_0 mb_1 count=100" >"$debug/traffic/start"
await state_is f done
inside rdma statistic show link mb_0/1 | tr ' ' '\n' | sed -n '3,$p' | paste -d ' ' - - >"$dir/said"
for counter in "$ib"/mb_0/ports/1/hw_counters/*; do
  name=${counter##*/}
  [ "$name" = lifespan ] || expect "$(cat "$counter")" "$(value "$name" "$dir/said")" "$name"
done
expect "$(($(ls "$ib/mb_0/ports/1/hw_counters" | wc -l) - 1))" "$(grep -c '^[a-z]' "$dir/said")" "number of counters"

test_case "no counter is optional, and none is a queue pair's"
for words in mode "mode supported" "mode link mb_0/1"; do
  # shellcheck disable=SC2086
  expect "0 " "$(outcome_of inside rdma statistic $words)" "rdma statistic $words"
done
expect "0 link mb_0/1 mode qp auto off" "$(outcome_of inside rdma statistic qp mode link mb_0/1 | xargs)" "rdma statistic qp mode"

test_case "resources are those of the programs, with their pids"
needs ib_write_bw
needs_provider
start_server ib_write_bw -n 100000000
run_client ib_write_bw -n 100000000 &
running=$!
at_end eval 'kill $running $server 2>/dev/null'
has_queue_pair() { inside rdma resource show qp link mb_1/1 | grep -q 'state RTS'; }
await has_queue_pair
line=$(inside rdma resource show qp link mb_1/1 | grep 'state RTS')
pid=$(pgrep -f "^ib_write_bw .* -p $port 127.0.0.1")
expect "$(ls "$ib/mb_1/pcc/qps") $pid ib_write_bw" "$(sed -E 's/.* lqpn ([0-9]+) .* pid ([0-9]+) comm ([^ ]+).*/\1 \2 \3/' <<<"$line")" "queue pair of the client"
for kind in pd cq mr ctx; do
  inside rdma resource show $kind dev mb_1 >"$dir/said"
  grep -q "pid $pid comm ib_write_bw" "$dir/said" || fail "rdma resource show $kind: $(cat "$dir/said")"
done
[[ $(inside rdma resource show mb_1) == *"pd 1 cq 1 qp 1 cm_id 0 mr 1 ctx 1"* ]] || fail "rdma resource: $(inside rdma resource show mb_1)"
kill "$running" "$server"
wait "$running" "$server" || true
all_gone() { ! grep -q pid= "$debug/resources"; }
await all_gone

test_case "an id of librdmacm is a resource"
needs rping
"$ROCEFS" enter -m "$mnt" -- timeout 60 rping -s >/dev/null 2>&1 &
at_end eval "kill $! 2>/dev/null"
listens_at() { inside rdma resource show cm_id | grep -q 'state LISTEN ps TCP pid [0-9]* comm rping src-addr 0.0.0.0:7174'; }
await listens_at

test_case "a static program with threads is answered as by the kernel"
needs gcc
gcc -static -O1 -Wall -pthread -o "$dir/client" "$lib/netlink_client.c" || skip "no static libc"
expect "0 2 devices" "$(outcome_of inside "$dir/client")" "the program"
expect "Operation not supported" "$(inside rdma dev set mb_0 name other 2>&1 | grep -o 'Operation not supported')" "a change"

test_case "a program has a socket for each of many devices"
printf '[topology]\nkind = star\nhosts = 60\n' >"$dir/many.ini"
mounted -o "config=$dir/many.ini"
for object in dev link; do
  expect "0 60" "$(inside rdma $object >"$dir/said" && echo "$? $(wc -l <"$dir/said")")" "rdma $object"
done
mounted

test_case "the server ends after the last program, and leaves other files alone"
servers() {  # in the mount namespace of the command
  local pid
  for pid in $(pgrep -x rocefs-netlink -r S,R,D); do
    [ "$(readlink "/proc/$pid/ns/mnt" 2>/dev/null)" != "$space" ] || echo "$pid"
  done
}
no_servers() { [ -z "$(servers)" ]; }
inside sleep 98764 &
command=$!
await pgrep -f '^sleep 98764$'
space=$(readlink "/proc/$(pgrep -f '^sleep 98764$')/ns/mnt")
expect 1 "$(servers | wc -l)" "servers beside one command"
expect "/ /dev/null" "$(readlink "/proc/$(servers)/cwd" "/proc/$(servers)/fd/0" | xargs)" "directory and input of the server"
pkill -KILL -f '^sleep 98764$'
wait $command || true
await no_servers
expect 0 "$(echo x | inside cat | wc -l | awk '{print $1 - 1}')" "a pipe ends with the command"

test_case "a user's own /sys cannot read files of the server's user"
needs_root "one user is another one's server"
unshare -m true 2>/dev/null || skip "no mount namespaces"
as_user unshare -Urm true 2>/dev/null || skip "no user namespaces"
mounted -o allow_other
open_to_users
(umask 077 && echo hidden-text >"$dir/secret")
cat >"$dir/attack" <<'END'
mount -t tmpfs none /sys
mkdir -p /sys/class/infiniband/x/device/infiniband_verbs/uverbs0 /sys/class/infiniband/x/ports/1
ln -s "$1" /sys/class/infiniband/x/fw_ver
mkfifo /sys/class/infiniband/x/node_guid
rdma dev
END
chmod 755 "$dir/attack"
inside setpriv --reuid=65534 --regid=65534 --clear-groups unshare -Urm sh "$dir/attack" "$dir/secret" >"$dir/said" 2>&1
grep -q '0: x:' "$dir/said" || fail "no device of the user's own: $(cat "$dir/said")"
! grep -q hidden-text "$dir/said" || fail "the server has read a file for a stranger"

test_case "an answer never goes to the process that gets a killed asker's PID"
needs gcc
needs_root "no PID is chosen"
unshare -pf --mount-proc true 2>/dev/null || skip "no PID namespaces"
gcc -O1 -Wall -o "$dir/reuse" "$lib/netlink_reuse.c"
expect "0 untouched" "$(outcome_of timeout -s KILL 30 unshare -pf --mount-proc "$ROCEFS" enter -m "$mnt" -- "$dir/reuse")" "the process"

test_case "a request is answered with the asker's files, whatever call it came by"
needs gcc
gcc -O1 -Wall -static -o "$dir/writer" "$lib/netlink_writer.c" || skip "no static libc"
expect "0 send 2 write 2 writev 2 sendmmsg error -95 copy error -95" "$(outcome_of inside "$dir/writer")" "in the command's root"
needs_root "nobody has another root"
mkdir -p "$dir/other/sys"
cp "$dir/writer" "$dir/other/ask"
expect "0 send 0 write 0 writev 0 sendmmsg error -95 copy error -95" "$(outcome_of inside chroot "$dir/other" /ask)" "in an empty root"

test_case "a user whose /sys does not answer delays no other user"
needs gcc python3
needs_root "there is one user"
as_user unshare -Urm true 2>/dev/null || skip "no user namespaces"
mounted -o allow_other
open_to_users
gcc -O1 -Wall -static -o "$dir/writer" "$lib/netlink_writer.c" || skip "no static libc"
mkdir -p "$dir/silent"
python3 "$lib/silent_fuse.py" "$dir/silent" >"$dir/server" 2>&1 &
at_end eval "kill -KILL $! 2>/dev/null; umount -l '$dir/silent' 2>/dev/null || true"
await grep -q . "$dir/server"
grep -q mounted "$dir/server" || skip "no file system here: $(cat "$dir/server")"
cat >"$dir/both" <<'END'
setpriv --reuid=65534 --regid=65534 --clear-groups unshare -Urm sh -c 'mount --bind "$1/silent" /sys && exec "$1/writer"' sh "$1" &
for _ in $(seq 100); do
  ! grep -q asked "$1/server" || break
  sleep 0.1
done
grep asked "$1/server" | head -n 1
timeout -s KILL 10 rdma dev | grep -o 'mb_[0-9]'
kill -KILL $!
END
expect "asked mb_0 mb_1" "$(inside sh "$dir/both" "$dir" 2>/dev/null | xargs)" "devices of the other user"

test_case "on a host the answers are of its devices, in a nested command too"
[ -e /dev/net/tun ] || skip "no /dev/net/tun here"
[[ $ROCEFS_BUILD != */tsan ]] || skip "the thread of ThreadSanitizer is one too many for setns(2)"
mounted
"$ROCEFS" host -m "$mnt" mb_1 true 2>"$dir/why" || skip "no hosts here: $(cat "$dir/why")"
expect mb_1/1 "$("$ROCEFS" host -m "$mnt" mb_1 rdma link | awk '{print $2}')" "rdma link on mb_1"
expect 'link mb_0/1' "$("$ROCEFS" host -m "$mnt" mb_1 -- "$ROCEFS" host -m "$mnt" mb_0 rdma link 2>&1 | sed 's/ state.*//')" "rdma link on mb_0, from mb_1"
index=$("$ROCEFS" host -m "$mnt" mb_1 -- ip -o link show dev "$(ls "$ib/mb_1/device/net")" | cut -d: -f1)
expect "$index" "$("$ROCEFS" host -m "$mnt" mb_1 -- rdma -j link | grep -oE '"netdev_index":[0-9]+' | cut -d: -f2)" "index of the interface"
