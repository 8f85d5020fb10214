#!/bin/bash
# A short chaos run (`make chaos` is the long one, under sanitizers): CHAOS_SECONDS (25).
export CHAOS_SECONDS=${CHAOS_SECONDS:-25} CHAOS_LOGS=$ROCEFS_TEST_DIR/chaos
exec "$(dirname "$0")/../chaos/run" "$ROCEFS_BUILD"
