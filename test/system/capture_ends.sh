#!/bin/bash
# A capture whose file stops answering: packets continue, the capture ends by itself and gives the reason; a
# concurrent reset waits for it.
. "$(dirname "$0")/lib/common.bash"
needs_root "a FUSE file system that hangs needs root here"
silent=$dir/silent server=
mkdir "$silent"
dies() {  # the file system
  [ -z "$server" ] || kill -KILL "$server"
  wait "$server" 2>/dev/null || true
  server=
  umount -l "$silent" 2>/dev/null || true
}
at_end dies
silent_at() {  # OPERATION: the file system takes files until there is one of these
  rm -f "$dir/server"
  python3 "$lib/silent_fuse.py" "$silent" fuse.silent "$1" >"$dir/server" 2>&1 &
  server=$!
  await grep -qs mounted "$dir/server"
}
mounted
worker=$(worker_pid)
off() { [ "$(<"$debug/pcap")" = off ]; }
captured() {  # what is sent, by a capture that goes on
  echo "$1 write mb_0 mb_1 size=1M count=2" >"$debug/traffic/start"
  await state_is "$1" "done"
  expect ok "$(store off "$debug/pcap")" "its end"
  [ "$(stat -c %s "$dir/$1.pcap")" -gt 2000000 ] || fail "the capture has $(stat -c %s "$dir/$1.pcap") bytes"
}

test_case "a capture whose file stops answering ends by itself and gives the reason"
silent_at write
expect ok "$(store "$silent/x.pcap" "$debug/pcap")" "a capture"
echo "a write mb_0 mb_1 size=1M count=100" >"$debug/traffic/start"
await grep -q asked "$dir/server"
await state_is a "done"
await off
expect 1 "$(grep -c "capture ended: .*$silent/x.pcap: .*does not answer" "$debug/dmesg")" "what dmesg says: $(cat "$debug/dmesg")"
dies
expect ok "$(store "$dir/b.pcap" "$debug/pcap")" "another capture"
captured b

test_case "a reset waits for a capture that is ending"
# The capture ends because the disk is full, and the close of its file is not answered, which is reported after
# ten seconds. A concurrent reset waits for that end, or it would end the next capture, too.
silent_at full
expect ok "$(store "$silent/y.pcap" "$debug/pcap")" "a capture"
echo "c write mb_0 mb_1 size=1M count=2" >"$debug/traffic/start"
await grep -q asked "$dir/server"
grep -q "capture ended: .*$silent/y.pcap: No space left on device" "$debug/dmesg" || fail "what dmesg says: $(cat "$debug/dmesg")"
SECONDS=0
expect ok "$(store 1 "$debug/reset")" "the reset"
[ $SECONDS -ge 3 ] || fail "the reset waited for $SECONDS s"
expect ok "$(store "$dir/d.pcap" "$debug/pcap")" "the next capture"
captured d
dies
expect "$worker" "$(worker_pid)" "the worker"
