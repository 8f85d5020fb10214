#!/bin/bash
# The provider's libraries for each private ABI of libibverbs, each loaded by something that has the
# symbols, the table of verbs and the verbs_context of that version, and opens a device of a mount. That
# is not libibverbs: of the real ones only the distribution's can be run here, by the other tests.
. "$(dirname "$0")/lib/common.bash"
abi=$(realpath "$(dirname "$0")/../abi")
mounted

test_case "the provider works with each private ABI of libibverbs"
# rdma-core, ABI: the table's order is in test/abi/slots. Each function stands where its name says, and none
# is left out.
while read -r version number; do
  place() { awk -v version="$version" -v verb="$1" '$1 == version {for (i = 2; i <= NF; ++i) if ($i == verb) print i - 2}' "$abi/slots"; }
  library=$ROCEFS_BUILD/lib/librocefs-rdmav$number.so
  status=0
  "$ROCEFS_BUILD/test/abi/open" "$ROCEFS_BUILD/test/abi/$version/libibverbs.so.1" "$library" "$mnt" \
    "$(place query_port)" "$(place free_context)" "$(place query_port_speed)" >"$dir/places" || status=$?
  [ $status -eq 0 ] || fail "rdma-core $version: status $status: $(tail -n 1 "$dir/places")"
  nm "$library" | awk '$3 ~ /^rocefs_/ {sub(/^0+/, "", $1); print $1, $3}' >"$dir/symbols"
  wrong=$(awk -v version="$version" '
    FILENAME ~ /slots$/ {if ($1 == version) for (i = 2; i <= NF; ++i) verb[i - 2] = "rocefs_" $i; next}
    FILENAME ~ /symbols$/ {name[$1] = $2; defined[$2] = 1; next}
    {served[$1] = 1; ++count; if (name[$2] != verb[$1]) print "place", $1, "of", verb[$1], "has", name[$2]}
    END {
      for (i in verb) if (defined[verb[i]] && !served[i]) print verb[i], "is not in the table"
      if (count < 35) print count, "verbs"
    }' "$abi/slots" "$dir/symbols" "$dir/places")
  [ -z "$wrong" ] || fail "rdma-core $version: $wrong"
done <<'VERSIONS'
44 34
57 57
59 59
62 59
64 64
VERSIONS
