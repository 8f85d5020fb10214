#!/bin/bash
# The README's tour works by copy and paste, line by line; where a comment says what is printed, that
# is printed.
. "$(dirname "$0")/lib/common.bash"
readme=$(realpath "$(dirname "$0")/../../README.md")
command -v tshark >/dev/null || { echo "no tshark"; exit 77; }

# Its lines, at this test's paths; building is not what is tested here.
sed -n '/^## A tour/,/^## The files/p' "$readme" | sed -n 's/^    //p' |
  sed -e 's|/tmp/nic|@MNT@|g; s|/tmp/|@DIR@/|g; /^make$/d' \
    -e "s|@MNT@|$mnt|g; s|@DIR@|$dir|g; s|build/bin/rocefs|$ROCEFS|g" \
    -e "s|\$PWD/build/bin|$(dirname "$ROCEFS")|g" \
    -e "s|tools/scenarios|$(dirname "$readme")/tools/scenarios|g; s|tools/examples|$(dirname "$readme")/tools/examples|g" >"$dir/tour"
[ "$(wc -l <"$dir/tour")" -gt 25 ] || fail "where is the tour?"

lines=0
while IFS= read -r line; do
  wanted=$(sed -n 's/.*[^ ]  *# //p' <<<"$line")
  status=0
  if [[ $line == export\ * || $line == enter\(\)* || ($line == cd\ * && $line != *\&\&*) ]]; then
    eval "${line%%#*}"
    [[ $line != enter\(\)* ]] || export -f enter
    continue
  fi
  if [[ $line == *"cd / "* ]]; then cd /; line=${line#cd / && }; fi
  said=$(LC_ALL=C bash -c "$line" 2>&1) || status=$?
  lines=$((lines + 1))
  case $wanted in
    *"out of range") [ $status -ne 0 ] || fail "no error: $line"; status=0 ;;
  esac
  [ $status -eq 0 ] || fail "$line: $said"
  case $wanted in
    "mb_0 mb_1" | mb_0-sw_0* | "aimd dcqcn"*) expect "$wanted" "$(xargs <<<"$said")" "$line" ;;
    "4: ACTIVE, "*) expect "$wanted" "$(paste -sd, <<<"$said" | sed 's/,/, /')" "$line" ;;
    *"out of range" | running | "done") grep -q "$wanted" <<<"$said" || fail "$line: $said" ;;
    [0-9]*:*) expect "retransmitted ${wanted%%:*}" "$said" "$line" ;;
    oops*) expect "$wanted" "$said" "$line" ;;
    *"(ERANGE)") grep -qF "${wanted#… }" <<<"$said" || fail "$line: $said" ;;
  esac
done <"$dir/tour"
echo "$lines lines"
mountpoint -q "$mnt" && fail "the tour leaves it mounted"
exit 0
