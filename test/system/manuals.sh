#!/bin/bash
# The manual pages match the programs in both directions: options, keys, functions, statuses, limits and
# variables of a page exist, and existing ones are in a page. Examples are accepted.
. "$(dirname "$0")/lib/common.bash"
cd "$(dirname "$0")/../.."
pages=doc/man
build=$(dirname "$(dirname "$ROCEFS")")
made=$build/share/man/man1  # pages that make writes

same() {  # WHAT DOCUMENTED THERE: sets of words
  local difference
  [ "$2" ] || fail "$1: nothing is documented"
  difference=$(diff <(tr -s ' ' '\n' <<<"$2" | sort -u) <(tr -s ' ' '\n' <<<"$3" | sort -u)) && return
  mistake "$1 (<: in the page alone, >: not in the page)"$'\n'"$difference"
}
path_of() { if [ -e "$pages/$1" ]; then echo "$pages/$1"; else echo "$made/$1"; fi; }
# The tags of a section, and of a subsection of it.
tags() {  # PAGE SECTION [SUBSECTION]
  python3 test/system/lib/manual_tags.py "$(path_of "$1")" |
    awk -F'\t' -v section="$2" -v sub_="${3:-}" '$1 == section && (sub_ == "" || $2 == sub_) && $3 != "" && $3 != "EX" {print $3}'
}
example() {  # PAGE SECTION
  python3 test/system/lib/manual_tags.py "$pages/$1" | awk -F'\t' -v section="$2" '$1 == section && $3 == "EX"' | cut -f4-
}
flags() { grep -oE -- '(^|[ ,])-{1,2}[A-Za-z-]+' | tr -d ' ,' | grep -vx -- -o | xargs; }
keys() { grep -oE '(^|, )[a-z][a-z0-9_]*' | tr -d ' ,' | xargs; }
header=$(find pcc -name libmango.h)

test_case "groff reports no errors in the pages"
needs groff
for page in "$pages"/* "$made"/*; do
  said=$(groff -man -ww -Tutf8 -z "$page" 2>&1)
  [ -z "$said" ] || mistake "$said"
done

test_case "the options are those of --help"
options_of() { sed -n '/^  -/p' | sed 's/^  //; s/   *.*//'; }
same "options of rocefs" "$(tags rocefs.1 OPTIONS | flags)" "$("$ROCEFS" --help | options_of | flags)"
same "options of rocefs enter" "$(tags rocefs-enter.1 OPTIONS | flags)" "$("$ROCEFS" enter --help | options_of | flags)"
same "options of rocefs host" "$(tags rocefs-host.1 OPTIONS | flags)" "$("$ROCEFS" host --help | options_of | flags)"
same "options of rocefs attach" "$(tags rocefs-attach.1 OPTIONS | flags)" "$("$ROCEFS" attach --help | options_of | flags)"
same "options of rocefs run" "$(tags rocefs-run.1 OPTIONS | flags)" "$("$ROCEFS" run --help | options_of | flags)"
same "options of rocefs wait" "$(tags rocefs-wait.1 OPTIONS | flags)" "$("$ROCEFS" wait --help | options_of | flags)"
same "options of rocefs view" "$(tags rocefs-view.1 OPTIONS | flags)" "$("$ROCEFS" view --help | options_of | flags)"
same "options of rocefs top" "$(tags rocefs-top.1 OPTIONS | flags)" "$("$ROCEFS" top --help | options_of | flags)"
same "options of rocefs sim" "$(tags rocefs-sim.1 OPTIONS | flags)" "$("$ROCEFS" sim --help | options_of | flags)"
same "mount options" "$(tags rocefs.1 OPTIONS 'Mount options' | keys)" \
  "$("$ROCEFS" --help | sed -n '/^options after -o:/,/^$/s/^  //p' | sed 's/   *.*//' | keys)"

test_case "mango-ctl(1) describes all commands"
# mango-ctl(1) has each command with its usage, its summary, and its arguments but for the device.
mango_ctl=$build/bin/mango-ctl page=$(path_of mango-ctl.1)
python3 test/system/lib/help_walk.py "$mango_ctl" >"$dir/help"
same "options of mango-ctl" "$(tags mango-ctl.1 OPTIONS | flags)" "$("$mango_ctl" --help | options_of | flags)"
same "commands of mango-ctl" \
  "$(python3 test/system/lib/manual_tags.py "$page" | awk -F'\t' '$1 == "COMMANDS" && $3 != "" && $3 != "EX" {
    if (index($3 " ", $2 " ") == 1) {print usage = $3} else print usage ":" $3}' | tr ' ' _)" \
  "$(awk -F'\t' '$2 == "usage" {usage = $3}
    $2 == "usage" && $3 !~ /COMMAND \.\.\.$/ {print usage}
    ($2 == "argument" || $2 == "option") && $1 != "" && $3 !~ /DEVICE|^-h, --help|^--mount|^--json/ {print usage ":" $3}' "$dir/help" | tr ' ' _)"
sed 's/\\-/-/g; s/\\f.//g' "$page" >"$dir/plain"
while IFS= read -r summary; do
  grep -qE "^$summary\." "$dir/plain" || mistake "mango-ctl(1) has no '$summary.'"
done < <(awk -F'\t' '$2 == "command" && $4 != "" {print $4}' "$dir/help")
awk -v page="$page" '/^\.TP/ {tag = NR + 1; next} NR == tag {name = $0; next}
  NR == tag + 1 && /^(\.(TP|RS|RE|SS|SH|PP)|$)/ {print "FAILED: " page ": nothing is said of " name; bad = 1} END {exit bad}' "$page" ||
  mistake "mango-ctl(1): a name without text"

test_case "the mount options are those of the parser"
# Options that the parser of -o knows; it refuses two of FUSE's.
same "mount options of the parser" "$(tags rocefs.1 OPTIONS 'Mount options' | grep -v ^allow_other | keys) max_read subtype" \
  "$(grep -hoE '(key|option) == "[a-z_]+"' $(find tools/rocefs -name options.cc) | cut -d '"' -f 2 | xargs)"

test_case "the sections and keys are those of the ini parser"
# The ini file: words that the parser's errors list.
wanted() {  # TEXT: the list in the error
  printf '%b' "$1" >"$dir/test.ini"
  "$ROCEFS" sim "$dir/test.ini" 2>&1 | sed -n 's/.*: unknown [^:]*: \(.*\) is wanted$/\1/p' | sed 's/ or /, /'
}
same "sections" "$(python3 test/system/lib/manual_tags.py $pages/rocefs.ini.5 | cut -f2 | sed -n 's/^\[\(.*\)\]$/\1/p' | tr ' ' _ | xargs)" \
  "$(wanted '[zzz]\n' | sed 's/, /\n/g' | tr ' ' _ | xargs)"
links='[device a]\n[device b]\n'
while read -r section before; do
  section=${section//_/ }
  documented=$(tags rocefs.ini.5 "$([ "$section" = sim ] && echo SECTIONS OF A RUN || echo SECTIONS OF A MOUNT)" "[$section]" | keys)
  actual=${section//NAME/a}
  actual=${actual//A B/a b}
  same "keys of [$section]" "$documented" "$(wanted "$before[$actual]\nzzz=1\n" | keys)"
  for key in $documented; do
    printf '%b' "$before[$actual]\n$key=?\n" >"$dir/test.ini"
    said=$("$ROCEFS" sim "$dir/test.ini" 2>&1) || true
    [[ $said != *"unknown key"* ]] || mistake "$said"
  done
done <<END
clock
nic
device_NAME
port_NAME_2 [device\\ta]\\nports=2\\n
uplink_NAME
link_A_B ${links// /\\t}
topology
sim
END

test_case "the functions, statuses, limits and variables are those of the library"
# The library: its header, its exports and its variables.
functions=$(sed -n '/^\.SH SYNOPSIS/,/^\.SH DESCRIPTION/p' $pages/libmango.3 | grep -oE '\bmango_[a-z_]+\(' | tr -d '(' | xargs)
same "functions of libmango" "$functions" \
  "$(sed -n '/^MANGO_API /{:more;/;/!{N;b more};s/.* \**\(mango_[a-z_]*\)(.*/\1/p}' $header | xargs)"
same "exports of libmango" "$functions" \
  "$(nm -D --defined-only "$build/lib/libmango.so" | awk '$2 == "T" && $3 ~ /^mango_/ {sub(/@.*/, "", $3); print $3}' | xargs)"
own=$(sed -n '/^\.SH SYNOPSIS/,/^\.SH DESCRIPTION/p' $pages/rocefs_pcc.3 | grep -oE '\brocefs_pcc_[a-z_]+\(' | tr -d '(' | sort | xargs)
same "functions of rocefs_pcc" "$own" \
  "$(sed -n 's/^MANGO_API .*\b\(rocefs_pcc_[a-z_]*\)(.*/\1/p' "${header%/*}/rocefs_pcc.h" | sort | xargs)"
same "exports of rocefs_pcc" "$own" \
  "$(nm -D --defined-only "$build/lib/libmango.so" | awk '$2 == "T" && $3 ~ /^rocefs_pcc_/ && $3 !~ /^rocefs_pcc_test_/ {sub(/@.*/, "", $3); print $3}' | sort | xargs)"
same "statuses" "MANGO_STATUS_OK $(tags libmango.3 ERRORS | xargs)" "$(grep -oE '^  MANGO_STATUS_[A-Z_]+' $header | xargs)"
for limit in $(sed -n 's/^#define \(MANGO_PCC_MAX_[A-Z_]*\) \([0-9]*\).*/\1=\2/p' $header); do
  grep -A1 "^\.B ${limit%=*}\$" $pages/libmango.3 | grep -q "^${limit#*=} " || mistake "$limit"
done
same "limits" "$(tags libmango.3 LIMITS | xargs)" "$(grep -oE '^#define MANGO_PCC_MAX_[A-Z_]+' $header | cut -d ' ' -f 2 | xargs)"
same "environment of mango-ctl" "$(tags mango-ctl.1 ENVIRONMENT | tr -d , | xargs)" \
  "$(grep -rhoE '(getenv|environment)\("[A-Z_]+"\)' tools/mango-ctl | grep -oE '"[A-Z_]+"' | tr -d '"' | xargs)"
same "environment" "$(for page in rocefs.1 rocefs-enter.1 rocefs-host.1 rocefs-run.1 libmango.3; do tags $page ENVIRONMENT; done | tr -d , | xargs)" \
  "$(grep -rhoE '(getenv|taken)\("[A-Z_]+"\)|ROCEFS_TRUST_VARIABLE "[A-Z_]+"' tools/rocefs pcc rdma core | grep -oE '"[A-Z_]+"' | tr -d '"' | xargs)"

test_case "the examples are accepted"
example libmango.3 EXAMPLES >"$dir/example.c"
cc -std=c11 -Wall -Wextra -Werror -I"$(dirname "$header")" -fPIC -shared -o "$dir/example.so" "$dir/example.c" || mistake "libmango(3): its example"
example rocefs_pcc.3 EXAMPLES | sed '1i #include <rocefs_pcc.h>' >"$dir/example.c"
cc -std=c11 -Wall -Wextra -Werror -I"$(dirname "$header")" -fPIC -shared -o "$dir/example.so" "$dir/example.c" || mistake "rocefs_pcc(3): its example"
example rocefs.ini.5 DESCRIPTION >"$dir/example.ini"
"$ROCEFS" sim "$dir/example.ini" >"$dir/said" 2>&1 || mistake "rocefs.ini(5): $(cat "$dir/said")"

test_case "the pages are HTML too, and their links lead to pages"
html=$build/share/doc/rocefs/html
for page in "$pages"/* "$made"/*; do
  page=$html/${page##*/}.html
  grep -qs '<h1 class="Sh" id="NAME">' "$page" || mistake "${page##*/} has no NAME"
done
grep -q 'href="libmango.3.html"' "$html/rocefs_pcc.3.html" || mistake "rocefs_pcc(3) does not lead to libmango(3)"

test_case "pages and files that a page names exist"
for page in "$pages"/* "$made"/*; do
  for file in $(sed 's/\\-/-/g' "$page" | grep -oE '\b(core|rdma|pcc|tools)/[a-z_/.-]+\.(h|ini|cc)'); do
    [ -e "$file" ] || mistake "$page names $file"
  done
  while read -r name section; do
    [ -e "$(path_of "$name.$section")" ] || mistake "$page: $name($section)"
  done < <(sed 's/\\-/-/g' "$page" | sed -nE 's/^\.BR ((rocefs|mango|libmango)[a-z.-]*) \(([0-9])\).*/\1 \3/p')
done
