#!/bin/bash
# `make demo` works here.
. "$(dirname "$0")/lib/common.bash"
needs tshark

test_case "make demo succeeds"
TMPDIR=$dir "$(dirname "$0")/../../tools/demo" "$ROCEFS"
