#!/bin/bash
# tools/reference.md is the mount's own reference: it describes every file, and no others.
. "$(dirname "$0")/lib/common.bash"

page=$(dirname "$0")/../../tools/reference.md

test_case "tools/reference.md matches the mount, and describes each file"
"$(dirname "$0")/../../tools/print-reference" "$ROCEFS" >"$dir/page"
diff "$page" "$dir/page" || fail "tools/reference.md is out of date: make reference"
grep -E '\|  \|$' "$page" && fail "files that nobody has documented"

test_case "numbers have their unit"
for row in "dce_tcp_rtt:1 to 131071 (us)" "time_sa_mad:1 to 10000 (ms)" "lifespan:0 to 10000 (ms)" "rpg_ai_rate:1 to 1000000 (Mbit/s)" "dce_tcp_g:1 to 1023 (1/1024)" "rpg_min_dec_fac:1 to 100 (%)"; do
  grep -qF "| \`${row%%:*}\` | rw | knob | ${row#*:} |" "$page" || mistake "$row"
done

test_case "each file of a mount is in the reference, and each line matches a file"
# Checked independently of how the page is made: each file of the mount has a line, each line a file.
mounted -o uplink=127.94.$(($$ / 250 % 250)).$(($$ % 250 + 1))
echo down >"$debug/links/mb_0-sw_0/state"
for flow in a b; do echo "$flow write mb_0 mb_1 timeout=0" >"$debug/traffic/start"; done
for load in a b; do echo "$load pattern=permutation size=1 timeout=0" >"$debug/loads/start"; done
for fault in a b; do echo "$fault drop mb_0-sw_0" >"$debug/inject/add"; done
for device in mb_0 mb_1; do echo aimd >"$ib/$device/pcc/algo"; done
awk -F'[|`]' '/^## /{dir=substr($0, 4)} /^\| `/{print dir "/" $3}' "$page" >"$dir/patterns"
[ "$(wc -l <"$dir/patterns")" -gt 100 ] || fail "only $(wc -l <"$dir/patterns") lines"
matched=()
while read -r path; do
  found=
  while read -r pattern; do
    # shellcheck disable=SC2053
    if [[ $path == $pattern && ${path//[^\/]/} == "${pattern//[^\/]/}" ]]; then
      found=$pattern
      break
    fi
  done <"$dir/patterns"
  [ -n "$found" ] || fail "$path is not in the reference"
  matched+=("$found")
done < <(cd "$mnt" && find -L class/infiniband class/infiniband_verbs class/infiniband_mad class/misc dev class/net bus/pci/drivers kernel -maxdepth 12 -type f \
  -not -path '*/device/*' -not -path '*/subsystem/*' -not -path 'bus/pci/drivers/*/0000:*')
missing=$(comm -23 <(grep -E '^(class|bus|dev|kernel)/' "$dir/patterns" | sort) <(printf '%s\n' "${matched[@]}" | sort -u))
[ -z "$missing" ] || fail "in the reference and not in the mount: $missing"
