#!/bin/bash
# What `make demo` shows, it shows here too.
. "$(dirname "$0")/lib/common.bash"
needs tshark

test_case "make demo shows what it promises"
TMPDIR=$dir "$(dirname "$0")/../../tools/demo" "$ROCEFS"
