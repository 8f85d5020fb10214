#!/bin/bash
# OpenSM as it comes from the distribution: it takes the subnet over, configures it without an error,
# and leaves it to the emulated manager.
. "$(dirname "$0")/lib/common.bash"
. "$lib/mads.bash"
needs opensm saquery
export OSM_CACHE_DIR=$dir/osm OSM_TMP_DIR=$dir/osm
mkdir "$dir/osm"
diags=("$ROCEFS" enter -m "$mnt" --)
log=$dir/osm/log
sweep() { rm -f "$log"; run opensm -o -f "$log" --pidfile "$dir/osm/pid" "$@" >/dev/null; }
no_errors() { ! grep -q ' ERR \| 0x01 ' "$log" || fail "$1: $(grep -A 3 ' ERR \| 0x01 ' "$log")"; }
says() { grep -q "$1" "$log"; }

test_case "a sweep of one switch has no error, and the subnet is as before behind it"
mounted
needs_enter
before=$(run saquery PIR)
sweep
says "SUBNET UP" || fail "$(cat "$log")"
no_errors "a sweep"
expect "$(lid mb_0) 1" "$(sed 's/0x/0x0000/' <<<"$(run saquery PIR | grep -c PortInfoRecord)" | xargs -I{} echo "$(lid mb_0) $(sm_lid mb_0)")" "LID and manager"
expect "$before" "$(run saquery PIR)" "ports after OpenSM"

test_case "while it runs it answers for the subnet, and sweeps again without an error"
rm -f "$log"
"${diags[@]}" opensm -f "$log" --pidfile "$dir/osm/pid" -s 1 >"$dir/osm/said" 2>&1 &
manager=$!
at_end eval "kill $manager 2>/dev/null"
# Its log is buffered: the lids tell when it has configured the subnet.
is_managed() { [ "$(sm_lid mb_0) $(sm_lid mb_1)" = "$(lid mb_0) $(lid mb_0)" ]; }
await is_managed
[[ $(run sminfo) == *"sm lid $(lid mb_0) "*SMINFO_MASTER* ]] || fail "$(run sminfo)"
three_nodes() { [ "$("${diags[@]}" saquery -C mb_0 -N 2>/dev/null | grep -c 'NodeRecord dump')" = 3 ]; }
await three_nodes
expect "Resource temporarily unavailable" "$(bash -c ": <$mnt/dev/infiniband/issm0" 2>&1 | grep -o 'Resource.*')" "a second manager of the port"
echo down >"$debug/links/mb_1-sw_0/state"
two_nodes() { [ "$("${diags[@]}" saquery -C mb_0 -N 2>/dev/null | grep -c 'NodeRecord dump')" = 2 ]; }
await two_nodes
echo up >"$debug/links/mb_1-sw_0/state"
await three_nodes
kill $manager
wait $manager || true
no_errors "sweeps with a change"
is_emulated() { [ "$(sm_lid mb_1)" = 1 ]; }
await is_emulated
expect 3 "$(run saquery -C mb_1 -N | grep -c 'NodeRecord dump')" "nodes, from the emulated administrator"
unmounted

test_case "a leaf-spine network is configured without an error"
printf '[topology]\nkind = leaf-spine\nleaves = 2\nspines = 2\nhosts = 2\n' >"$dir/leaf.ini"
mounted -o "config=$dir/leaf.ini"
sweep
says "SUBNET UP" || fail "$(cat "$log")"
no_errors "a sweep"
unmounted
