#!/bin/bash
# What `make demo` shows, it shows here too.
. "$(dirname "$0")/lib/common.bash"
command -v tshark >/dev/null || { echo "no tshark"; exit 77; }
TMPDIR=$dir "$(dirname "$0")/../../tools/demo" "$ROCEFS"
