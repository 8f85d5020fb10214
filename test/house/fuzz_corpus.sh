#!/bin/bash
# Every fuzz target over its corpus: what was once found stays found.
set -euo pipefail
cd "$(dirname "$0")/../.."
for corpus in test/fuzz/corpus/*; do
  name=$(basename "$corpus")
  echo "$name: $("$ROCEFS_BUILD/test/fuzz/replay" "$name" "$corpus"/*)"
done
