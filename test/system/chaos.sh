#!/bin/bash
# A short chaos run (`make chaos` is the long one, under sanitizers): CHAOS_SECONDS (25).
. "$(dirname "$0")/lib/common.bash"
export CHAOS_SECONDS=${CHAOS_SECONDS:-25} CHAOS_LOGS=$ROCEFS_TEST_DIR/chaos

test_case "a chaos run hangs no call and leaves nothing behind"
status=0
"$(dirname "$0")/../chaos/run" "$ROCEFS_BUILD" >"$dir/said" 2>&1 || status=$?
cat "$dir/said"
[ $status -ne 77 ] || skip "$(tail -n 1 "$dir/said")"
[ $status -eq 0 ] || fail "status $status of test/chaos/run"
