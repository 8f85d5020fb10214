#!/bin/bash
# Makers of hosts that do not keep to the protocol: the mount's owner by `-o uid=` against root.
. "$(dirname "$0")/lib/common.bash"
needs_root "only root lends rights"
needs_user_namespaces
needs_mounters
[ -x /usr/bin/python3 ] || skip "no python3 for all users"
[ -e /dev/net/tun ] || skip "no /dev/net/tun here"
open_to_users

printf '#!/bin/sh\necho replaced, user "$(awk "/^Uid/ {print \\$2}" /proc/self/status)"\n' >"$dir/id"
chmod 755 "$dir/id"
on() { timeout -k 5 60 "$ROCEFS" host -m "$mnt" "$@"; }  # HOST COMMAND…
owned() { mounted -o allow_other,uid="$user",gid="$user"; }
make() {  # WHICH: the owner makes mb_0
  as_mounter /usr/bin/python3 "$lib/hostile_maker.py" "$mnt" mb_0 "$(ls "$ib/mb_0/device/net")" "$dir/id" "$1"
}

test_case "root on the owner's host is the owner"
owned
make own || fail "a maker with namespaces of its own is refused"
expect "0 replaced, user $user" "$(outcome_of on mb_0 -- id)" "root's command"
kill_worker
expect "0 replaced, user $user" "$(outcome_of on mb_0 -- id)" "after a worker's death"

test_case "root does not enter the owner's mounts with root's rights"
owned
make mixed || fail "the maker is refused"
expect "125 rocefs host: the host's namespaces belong to different users" "$(outcome_of on mb_0 -- id)" "root's command"

test_case "root does not enter what the owner calls a host in the machine's own namespaces"
owned
make machine || fail "the maker is refused"
expect "125 rocefs host: another user has made the host, with rights that are yours" "$(outcome_of on mb_0 -- id)" "root's command"
kill_worker
expect "125 rocefs host: another user has made the host, with rights that are yours" "$(outcome_of on mb_0 -- id)" "after a worker's death"

test_case "a maker that is stopped holds up the others for ten seconds, and dmesg names it"
owned
make stopped >"$dir/stopped" 2>&1 &
away=$!
stopped() { [ -s "$dir/stopped" ] && grep -q '^State:.*stopped' "/proc/$(<"$dir/stopped")/status"; }
await stopped
maker=$(<"$dir/stopped")
at_end kill -KILL "$maker"
expect "0 mb_0" "$(outcome_of on mb_0 hostname)" "the next command"
grep -q "pid $maker of user $user makes hosts no more: it has gone no step further for 10 s" "$debug/dmesg" || fail "$(cat "$debug/dmesg")"
kill -KILL "$maker"
wait $away || true
expect "0 mb_1" "$(outcome_of on mb_1 hostname)" "the other host"
