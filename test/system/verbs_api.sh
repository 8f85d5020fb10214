#!/bin/bash
# The provider through the verbs API, over the engine: test/provider has the tests, one line for each.
. "$(dirname "$0")/lib/common.bash"
. "$lib/takeover.bash"
verbs_test=$ROCEFS_BUILD/test/provider/verbs_test
driver=$mnt/bus/pci/drivers/mango_core

own=()
[ "$(id -u)" -ne 0 ] || own=(-o allow_other)  # some of it is another user's
mounted "${own[@]}"
needs_enter
run() { timeout -k 5 300 "$ROCEFS" enter -m "$mnt" -- "$@"; }
# The device leaves, or the worker dies, while threads wait.
under() {  # TESTS COMMAND… when they are ready
  local line program
  exec 5< <(run env "${environment[@]}" "$verbs_test" "$1")
  program=$!
  read -r line <&5 || fail "$1: it ended early"
  expect ready "$line" "$1"
  "${@:2}"
  cat <&5
  wait "$program" || fail "$1"
}
leave() { echo 0000:2b:00.0 >"$driver/unbind"; }

test_case "the verbs API works"
run "$verbs_test" || fail "some of it"

test_case "the verbs API works without shared regions"
ROCEFS_SHARE_REGIONS=0 run "$verbs_test" || fail "some of it, without regions that are shared"

test_case "waiting threads are told of a removed device and of a dead worker"
for environment in NONE=1 RDMAV_ALLOW_DISASSOC_DESTROY=1; do
  under leaving leave
  echo 0000:2b:00.0 >"$driver/bind"
  under dying kill_worker
done

test_case "threads are told when a cable is unplugged and plugged in"
exec 5< <(run "$verbs_test" port)
program=$!
for state in down up; do
  read -r line <&5 || fail "port: it ended early"
  expect ready "$line" "port $state"
  echo $state >"$debug/links/mb_0-sw_0/state"
done
cat <&5
wait "$program" || fail "port"

unmounted

test_case "under the virtual clock a device exists and cannot be opened"
mounted -o clock=virtual
said=$(run "$verbs_test" 2>&1) && fail "it opened a device under the virtual clock"
[[ $said == *"(errno 95, "* ]] || fail "under the virtual clock: $said"
