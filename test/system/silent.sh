#!/bin/bash
# Beside a rocefs that does not answer another one is found, and the silent one is reported.
. "$(dirname "$0")/lib/common.bash"
needs_root "only root mounts a file system that does not answer"
needs python3
ctl=$ROCEFS_BUILD/bin/mango-ctl
silent=$dir/silent
mkdir -p "$silent"
server=
end_server() { [ -z "$server" ] || kill -KILL $server 2>/dev/null || true; umount -l "$silent" 2>/dev/null || true; }
at_end end_server

# The machine may have mounts, too: all but these two are hidden.
[ "${1:-}" = alone ] || exec unshare -m "$0" alone
awk '$0 ~ / - fuse.rocefs / {print $5}' /proc/self/mountinfo | while read -r point; do umount -l "$point"; done
said() { outcome_of timeout -s KILL 60 "$@"; }

python3 "$lib/silent_fuse.py" "$silent" fuse.rocefs >"$dir/server" 2>&1 &
server=$!
await grep -q mounted "$dir/server"
answer="$silent: its rocefs does not answer; umount -f removes it"
say_all() {
  said "$ROCEFS" enter true >"$dir/enter" &
  said "$ctl" dev list >"$dir/ctl" &
  said "$ROCEFS" enter -m "$silent" true >"$dir/named" &
  said "$ctl" --mount "$silent" dev list >"$dir/named_ctl" &
  said "$ROCEFS" "$silent" >"$dir/start"
  wait %2 %3 %4 %5
}
say_all

test_case "a mount that does not answer is reported"
expect "125 rocefs enter: no rocefs is mounted ($answer)" "$(cat "$dir/enter")" "enter, silent alone"
expect "1 mango-ctl: error: no rocefs is mounted ($answer)" "$(cat "$dir/ctl")" "mango-ctl, silent alone"
expect "125 rocefs enter: $answer" "$(cat "$dir/named")" "enter by name"
expect "1 mango-ctl: error: $answer" "$(cat "$dir/named_ctl")" "mango-ctl by name"
expect "1 rocefs: $silent: the file system mounted there does not answer; umount -f removes it" "$(cat "$dir/start")" \
  "a start where it is mounted"

test_case "another mount is found beside one that does not answer"
mounted
expect "0 $answer
mb_0 mb_1" "$(said "$ROCEFS" enter sh -c 'ls /sys/class/infiniband | xargs')" "enter"
devices=$(said "$ctl" dev list)
[[ $devices == "0 $answer"*mb_0* ]] || fail "mango-ctl: $devices"
expect "0 mb_0 mb_1" "$(ROCEFS_MOUNT=$mnt said "$ROCEFS" enter sh -c 'ls /sys/class/infiniband | xargs')" "enter by name, beside it"
unmounted
