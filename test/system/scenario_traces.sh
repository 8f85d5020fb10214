#!/bin/bash
# Each run of tools/scenarios is the recorded run, packet by packet: its trace_hash covers time,
# link, headers and length of every packet. test/golden/scenario_traces has the hashes. Where behaviour
# changes on purpose, `test/system/scenario_traces.sh --print` prints the new ones. A load has its
# first flows alone; those that fail are a part of the run.
if [ "${1:-}" = --print ]; then ROCEFS=${ROCEFS:-build/bin/rocefs} ROCEFS_TEST_DIR=$(mktemp -d); fi
. "$(dirname "$0")/lib/common.bash"

# traces SCENARIO: a line for each variant.
traces() {
  { "$ROCEFS" sim "$dir/scenarios/$1.ini" --out "$dir/$1" 2>>"$dir/stderr" || true; } |
    sed -n -e '/, seed /d' -e 's/^# //; t variant' \
      -e 's/.*; \([0-9]*\) packet-hops; trace \([0-9a-f]*\)$/\1 \2/; t hash' -e b \
      -e ':variant; s/ /_/g; h; b' -e ":hash; x; G; s/\n/ /; s/^/$1 /p"
}

cp -r tools/scenarios "$dir/scenarios"
sed -i 's/^flows = [0-9]*$/flows = 300/' "$dir/scenarios/"*.ini
sed -i "s|= \.\./\.\./build/examples|= $(realpath "$(dirname "$ROCEFS")/../examples")|" "$dir/scenarios/"*.ini
for scenario in tools/scenarios/*.ini; do traces "$(basename "$scenario" .ini)"; done >"$dir/traces"
if [ "${1:-}" = --print ]; then cat "$dir/traces"; exit; fi

test_case "each run of each scenario has the recorded trace"
diff <(grep -v '^#' test/golden/scenario_traces) "$dir/traces" >"$dir/difference" ||
  fail "other runs than before (< before, > now): $(cat "$dir/difference")"
echo "$(wc -l <"$dir/traces") runs"
