#!/bin/bash
# Every knob of the reference: it has its initial value at first, accepts both ends of its range and every
# word, and refuses other values, keeping its own.
. "$(dirname "$0")/lib/common.bash"

export LC_ALL=C
mounted
# Store and read like `store` and `cat`, into $said and $value, without a process: there are thousands of them.
try() {
  if { echo "$1" >"$file"; } 2>"$dir/said"; then said=ok; else read -r said <"$dir/said"; said=${said##*: }; fi
}
look() { value=; IFS= read -rd '' value <"$file" || value=${value%$'\n'}; }
keeps() { look; expect "$1" "$value" "$2"; }
accepted() { try "$1"; expect ok "$said" "$name takes $1"; }
# An end of the range; knobs with a rule over several knobs have their own test.
end() {
  case $file in
    */fabric/*/ecn/kmin | */fabric/*/ecn/kmax | */pfc/threshold | */pfc/headroom)
      try "$1"
      case $said in ok | "Invalid argument") ;; *) fail "$name, given '$1'" ;; esac
      ;;
    *) accepted "$1" ;;
  esac
}
refused() {  # TEXT [WHY]
  local before
  look
  before=$value
  try "$1"
  case $said in "Invalid argument" | ${2:-Invalid argument}) ;; *) fail "$name, given '$1': $said" ;; esac
  keeps "$before" "$name keeps its value"
}

test_case "every knob accepts what the reference lists and refuses the rest"
knobs=0
while IFS='@' read -r directory name takes initial; do
  for file in "$mnt"/$directory/$name; do
    knobs=$((knobs + 1))
    [ -z "$initial" ] || keeps "$initial" "$file at first"
    case $directory/$name in
      */ecn/roce_*/min_time_between_cnps | */ecn/roce_*/dce_tcp_rtt)
        continue ;;  # what these take depends on one another: test/rdma/transport/congestion_test.cc
    esac
    case $takes in
      *" to "*)
        least=${takes% to *} most=${takes#* to } most=${most% (*}
        end "$least"
        end "$most"
        refused "9$most" "Numerical result out of range"
        [ "$least" = 0 ] || refused 0
        refused -1
        ;;
      *"|"*)
        for word in ${takes//|/ }; do
          accepted "$word"
          keeps "$word" "$name"
          refused "${word}x"
        done
        ;;
      "0, 1, y, n, on or off")
        for text in 1 y on Y; do
          accepted "$text"
          keeps 1 "$name"
        done
        for text in 0 n off N; do
          accepted "$text"
          keeps 0 "$name"
        done
        for text in x 2 -1 o; do refused "$text"; done
        [ -z "$initial" ] || accepted "$initial"
        continue  # as in the kernel, what follows is not looked at
        ;;
      "a line of at most "*)
        case $file in */mango_mgmt*/* | */pcc/plugin_dir) continue ;; esac  # not any line: test/pcc
        most=${takes//[^0-9]/}
        printf -v text "%${most}s" x
        accepted "$text"
        [ "$name" = node_desc ] || refused " $text"  # cut, as in the kernel
        continue  # any text is one
        ;;
      *) fail "$file takes '$takes': how is that tested?" ;;
    esac
    for text in x "1 2" 0x "1,5" "--1"; do refused "$text"; done
    [ -z "$initial" ] || accepted "$initial"
  done
done < <(awk -F' [|] ' '/^## /{dir=substr($0, 4)} $3 == "knob" {
  gsub(/[|`]| /, "", $1); gsub(/\\/, "", $4); sub(/ +$/, "", $5); print dir "@" $1 "@" $4 "@" $5}' "$debug/reference")
[ "$knobs" -ge 20 ] || fail "only $knobs knobs"
