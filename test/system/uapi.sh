#!/bin/bash
# The socket of verbs clients in the tree: it exists in every view of the mount and survives the death of
# a worker; and the mount ends like one without it.
. "$(dirname "$0")/lib/common.bash"
needs python3
uapi=$debug/uapi

try() { python3 "$lib/seqpacket.py" "$@"; }  # connect|bind PATH
none() {  # WHY rw|ro
  [ ! -e "$uapi" ] && [ -z "$(find "$debug" -name uapi)" ] || fail "there is one: $1"
  expect 1 "$(grep -c "no kernel/debug/rocefs/uapi, verbs programs find no device: $1" "$debug/dmesg")" "dmesg"
  expect ENOENT "$(try connect "$uapi")" "connect"
  [ "$2" = ro ] || expect EPERM "$(try bind "$uapi")" "somebody else's bind"
  kill_worker
  [ ! -e "$uapi" ] || fail "there is one after a takeover: $1"
  unmounted
}
# Checks by a user: socket and mode, connect, bind; once for each way to unmount.
cat >"$dir/use" <<'USE'
set -eu
gone() { ! mountpoint -q "$dir/his" && ! pgrep -f "^$dir/rocefs $dir/his" -r S,R,D >/dev/null; }
for how in "fusermount3 -u $dir/his || umount $dir/his" "kill \$(pgrep -of '^$dir/rocefs $dir/his')"; do
  "$dir/rocefs" "$dir/his" >/dev/null
  cd "$dir/his/kernel/debug/rocefs"
  stat -c '%F %a' uapi
  python3 "$dir/seqpacket.py" connect uapi
  python3 "$dir/seqpacket.py" bind other
  cd /
  eval "$how" 2>/dev/null
  end=$(($(date +%s) + 60))
  until gone; do [ "$(date +%s)" -lt $end ] || { echo "not gone: $how"; exit 1; }; done
done
USE
his="socket 666 ok EPERM socket 666 ok EPERM"
export dir
needs_his() {
  needs_root
  needs_user_namespaces
  open_to_users
  install -m 755 "$ROCEFS" "$dir/rocefs"
  cp "$lib/seqpacket.py" "$dir"
  mkdir -p "$dir/his"
  chown 65534:65534 "$dir/his"
}

test_case "the socket exists when rocefs returns, under either clock"
for clock in virtual real; do
  mounted -o clock=$clock
  expect "socket 666 0" "$(stat -c '%F %a %s' "$uapi")" "the node"
  expect s "$(find "$debug" -maxdepth 1 -name uapi -printf %y)" "its type in the directory"
  expect "" "$(grep "no device" "$debug/dmesg" || true)" "what dmesg says of it"
  expect ok "$(try connect "$uapi")" "connect"
  [ $clock = real ] || unmounted
done

test_case "nobody else can create or remove a socket"
expect EADDRINUSE "$(try bind "$uapi")" "bind where it is"
expect EPERM "$(try bind "$debug/other")" "bind beside it"
expect EPERM "$(try bind "$mnt/uapi")" "bind elsewhere"
[ "$(quietly cat "$uapi")" = "No such device or address" ] || fail "it was opened"
if $root; then
  expect "Operation not permitted" "$(quietly rm -f "$uapi")" "rm"
  expect "Operation not permitted" "$(quietly mv "$uapi" "$debug/other")" "mv"
  expect "Operation not permitted" "$(quietly mknod "$debug/other" p)" "mknod"
fi
expect "socket" "$(stat -c %F "$uapi")" "the node afterwards"

test_case "clients that connect while a worker dies are not refused"
ino=$(stat -c %i "$uapi")
chmod 640 "$uapi"
for round in 1 2 3; do
  supervisor=$(daemon_pid)
  kill -STOP "$supervisor"
  kill -KILL "$(pgrep -P "$supervisor")"
  try connect "$uapi" >"$dir/connected" &
  connecting=$!
  kill -CONT "$supervisor"
  wait $connecting
  expect ok "$(cat "$dir/connected")" "connect while a worker takes over"
  expect "$ino socket 640" "$(stat -c '%i %F %a' "$uapi")" "the node after a takeover"
  expect ok "$(try connect "$uapi")" "connect after a takeover"
done
expect EPERM "$(try bind "$debug/other")" "bind after a takeover"

test_case "a mount with a socket ends as usual, after a takeover too"
unmounted
for how in "fusermount3 -u $mnt" "kill -TERM \$(daemon_pid)" "umount $mnt"; do
  $root || [[ $how != umount* ]] || continue
  for takeover in false true; do
    mounted
    ! $takeover || kill_worker
    expect ok "$(try connect "$uapi")" "connect"
    eval "$how" || fail "$how"
    await gone
  done
done

test_case "an open file keeps a mount that was unmounted lazily"
lazily() { if $root; then umount -l "$mnt"; else fusermount3 -u -z "$mnt"; fi; }
for takeover in false true; do
  mounted
  exec 5<"$debug/seed"
  lazily
  expect 1 "$(cat <&5)" "an open file of a mount that is gone"
  if $takeover; then
    kill_worker
    expect "" "$(cat <&5)" "the same after a takeover, at its end"
  fi
  [ -n "$(daemon_pid)" ] || fail "it ended while a file was open"
  exec 5<&-
  await gone
done

test_case "a connected client does not keep the mount"
mounted
coproc python3 -c 'import socket, sys
end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
end.connect(sys.argv[1])
print("in", flush=True); sys.stdin.readline()' "$uapi"
inside=$COPROC_PID  # the shell forgets it when that has ended
read -r line <&"${COPROC[0]}"
fusermount3 -u "$mnt"
await gone
echo >&"${COPROC[1]}"
wait "$inside"

test_case "a path may be longer than a socket's address"
long=$dir/$(printf '%0100d' 0)
mkdir "$long"
"$ROCEFS" "$long" >/dev/null
expect ok "$(cd "$long/kernel/debug/rocefs" && try connect uapi)" "a long path"
fusermount3 -u "$long"
await sh -c "! mountpoint -q '$long'"

test_case "a mount that cannot have a socket says why in dmesg"
python3 "$lib/no_namespaces.py" "$ROCEFS" "$mnt" >/dev/null
none "no user namespace allowed here: Operation not permitted" rw

test_case "a read-only mount has no socket"
needs_root
mounted -o ro
none "kernel/debug/rocefs/uapi: Read-only file system" ro

test_case "another view of the mount has the socket, even after the first is gone"
$root && unshare -m true 2>/dev/null || skip "no mount namespaces"
mounted
mkdir -p "$dir/view"
mount --bind "$mnt" "$dir/view"
expect ok "$(unshare -mn python3 "$lib/seqpacket.py" connect "$dir/view/kernel/debug/rocefs/uapi")" "another namespace"
umount "$mnt"
expect ok "$(try connect "$dir/view/kernel/debug/rocefs/uapi")" "a view that stays"
kill_worker
expect ok "$(try connect "$dir/view/kernel/debug/rocefs/uapi")" "a view that stays, after a takeover"
expect ok "$(store 0.5 "$dir/view/kernel/debug/rocefs/links/mb_0-sw_0/loss")" "a store through it"
umount "$dir/view"
await gone

test_case "a command inside keeps the mount's files, but not the socket"
$root && unshare -m true 2>/dev/null || skip "no mount namespaces"
mounted
coproc "$ROCEFS" enter -m "$mnt" sh -c 'ls /dev/infiniband | xargs; '"python3 $lib/seqpacket.py connect /sys/kernel/debug/rocefs/uapi"';
  read line; cat /sys/class/infiniband/mb_0/fw_ver; until [ "$('"python3 $lib/seqpacket.py connect /sys/kernel/debug/rocefs/uapi"')" = ECONNREFUSED ]; do :; done; echo refused; read line'
inside=$COPROC_PID
said() { read -r line <&"${COPROC[0]}"; echo "$line"; }
expect "issm0 issm1 rdma_cm umad0 umad1 uverbs0 uverbs1" "$(said)" "entered: /dev/infiniband"
expect ok "$(said)" "entered: connect"
umount "$mnt"
echo >&"${COPROC[1]}"
expect 1.0.0 "$(said)" "entered, and unmounted outside"
expect refused "$(said)" "entered, and unmounted outside: connect"
[ -n "$(daemon_pid)" ] || fail "it ended while a command was inside"
echo >&"${COPROC[1]}"
wait "$inside"
await gone

test_case "an ordinary user has a socket in his mount"
needs_his
needs_setuid_fusermount
expect "$his" "$(as_mounter sh "$dir/use" 2>&1 | xargs)" "an ordinary user"

test_case "the root of a user namespace has a socket in his mount"
needs_his
expect "$his" "$(as_mounter unshare -Urm sh "$dir/use" 2>&1 | xargs)" "the root of a user namespace"
