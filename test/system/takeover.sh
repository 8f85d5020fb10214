#!/bin/bash
# The worker dies at each step of its work, and in the middle of a crowd; whoever uses the mount only
# waits a little. Stores that were accepted are there, once.
. "$(dirname "$0")/lib/common.bash"

loss=$debug/links/mb_0-sw_0/loss
mounted_with() {  # FAULT [OPTION…]
  ROCEFS_FAULT=$1 "$ROCEFS" "${@:2}" "$mnt" >/dev/null
}
unmounted() {
  unmount
  await sh -c "! mountpoint -q '$mnt'"
}
fired() { grep -q "fault point $1 fired" "$debug/dmesg"; }
quietly() { LC_ALL=C "$@" 2>&1 | sed 's/.*: //'; }

# One of everything. Prints what did not go as it should.
use() {
  expect 0 "$(cat "$loss")" "cat before the store"
  expect ok "$(store 0.25 "$loss")" "store"
  expect 0.25 "$(cat "$loss")" "cat after the store"
  chmod 600 "$loss"
  expect 600 "$(stat -c %a "$loss")" "mode"
  expect "mb_0-sw_0 mb_1-sw_0 sw_0-mb_0 sw_0-mb_1" "$(ls "$debug/links" | xargs)" "ls"
  expect ok "$(store 1ms "$debug/clock/advance")" "advance"
  expect 1000000 "$(cat "$debug/clock/now_ns")" "time after one advance"
  expect ok "$(store "f write mb_0 mb_1" "$debug/traffic/start")" "start of a flow"
}

points=()
for operation in setattr open write release opendir releasedir; do
  for stage in taken applied staged committing committed answered; do points+=("$operation-$stage"); done
done
for operation in lookup getattr readlink read readdir; do
  for stage in taken applied answered; do points+=("$operation-$stage"); done
done
for point in "${points[@]}" write-applied:2 write-committed:2 write-committed:3 any-answered:40; do
  mounted_with "$point" -o clock=virtual
  readlink "$ib/mb_0" >/dev/null
  use
  fired "${point%:*}" || fail "$point did not fire"
  unmounted
done
