#!/bin/bash
# The documents are correct. Each block of commands in README.md and doc/ is pasted into a fresh shell in the
# checkout, with the built programs in PATH, and prints its `# => TEXT`; links have targets; files and
# directories of the sources that a document names exist.
# documents.sh [DOCUMENT…] runs the blocks of these alone.
set -u
# A separate network: no other process uses its ports and loopback addresses.
if [ -z "${ROCEFS_OWN_NETWORK:-}" ]; then
  export ROCEFS_OWN_NETWORK=no
  spaces=(unshare -n)
  [ "$(id -u)" -eq 0 ] || spaces=(unshare -Urmn)
  if "${spaces[@]}" ip link set lo up 2>/dev/null; then
    ROCEFS_OWN_NETWORK=yes exec "${spaces[@]}" "$0" "$@"
  fi
fi
# Started by hand: uses the programs of build/, in a temporary directory.
export ROCEFS=${ROCEFS:-$(realpath "$(dirname "$0")/../..")/build/bin/rocefs}
scratch=
[ -n "${ROCEFS_TEST_DIR:-}" ] || { scratch=$(mktemp -d) && mkdir "$scratch/mnt" && export ROCEFS_TEST_DIR=$scratch; }
. "$(dirname "$0")/lib/common.bash"
end_by_hand() { unmount; rm -rf "$scratch"; }
[ -z "$scratch" ] || at_end end_by_hand
[ "$ROCEFS_OWN_NETWORK" = no ] || ip link set lo up
cd "$(dirname "$0")/../.."
needs tshark ibstat ibv_rc_pingpong rping gnuplot
dir=$(realpath "$dir") programs=$(realpath "$(dirname "$ROCEFS")")
build=$(dirname "$programs")
paste=$PWD/test/system/lib/paste.bash
documents=(README.md doc/*.md)
[ $# -eq 0 ] || documents=("$@")

# Writes a file for each block, LANGUAGE.LINE, in $dir/blocks/DOCUMENT; a fence without a language, and an
# indented block, are mistakes.
split_blocks() {  # DOCUMENT
  mkdir -p "$dir/blocks/$1"
  awk -v into="$dir/blocks/$1/" '
    /^ *```/ {
      if (file) { close(file); file = ""; next }
      language = $0; gsub(/^ *```| *$/, "", language)
      if (language !~ /^(sh|console|ini|text|c|cpp)$/) print FILENAME ":" NR ": a block of what? ```" language
      file = into language "." NR
      printf "" >file
      next
    }
    file { print >file; next }
    /^    / && blank { print FILENAME ":" NR ": a block without a fence" }
    { blank = /^ *$/ }
    END { if (file) print FILENAME ": the last block has no end" }' "$1"
}

# Prints the block as a reader would run it, with this test's directories.
in_place() {
  sed -e 's|/tmp/|@DIR@/|g; /^make$/d' -e "s|\$PWD/build\\b|@BUILD@|g; s|\\bbuild/\\(bin\\|lib\\|include\\)\\b|@BUILD@/\\1|g" \
    -e "s|@DIR@|$dir|g; s|@BUILD@|$build|g" "$1"
}
left_mounted() { awk -v at=" $dir/" 'index($0, at) {print $5}' /proc/self/mountinfo; }
run_block() {  # FILE NAME
  local said status=0 at
  in_place "$1" >"$dir/block"
  said=$(env -u ROCEFS_MOUNT -u SYSFS_PATH PATH="$programs:$PATH" TMPDIR="$dir" \
    timeout --kill-after=5 60 bash "$paste" "$dir/block" 2>&1 </dev/null) || status=$?
  [ "$status" -ne 124 ] || said="takes more than a minute"
  [ "$status" -eq 0 ] || mistake "$2: $said"
  for at in $(left_mounted); do
    [ "$status" -ne 0 ] || mistake "$2: leaves $at mounted"
    fusermount3 -u "$at" 2>/dev/null || umount -l "$at"
  done
  [ "$status" -ne 0 ] || commands=$((commands + ${said% commands}))
}
# Runs an ini block as a separate file.
check_ini() {  # FILE NAME
  local said
  cp "$1" "$dir/example.ini"
  said=$(rocefs sim "$dir/example.ini" 2>&1) || mistake "$2: $said"
}

test_case "each block of commands works when pasted"
mkdir -p "$dir/nic" "$dir/home"
export HOME=$dir/home
rocefs() { "$ROCEFS" "$@"; }
blocks=0 commands=0 shown=0
for document in "${documents[@]}"; do
  while read -r mistake; do mistake "$mistake"; done < <(split_blocks "$document")
  if [ "$document" = README.md ]; then  # a tour in one shell
    find "$dir/blocks/$document" -name 'sh.*' | sort -t. -k3n | xargs cat >"$dir/tour"
    rm "$dir/blocks/$document"/sh.*
    mv "$dir/tour" "$dir/blocks/$document/sh.1"
  fi
  while read -r file; do
    name="$document:${file##*.}"
    case ${file##*/} in
      sh.*) blocks=$((blocks + 1)) && run_block "$file" "$name" ;;
      ini.*) check_ini "$file" "$name" ;;
      console.*) shown=$((shown + 1)) ;;
    esac
  done < <(find "$dir/blocks/$document" -type f | sort -t. -k3n -k2n)
done
echo "REPORT documents: $blocks blocks with $commands commands run, $shown shown only"

test_case "few commands are shown only, and README.md is short"
if [ $# -eq 0 ]; then
  blocks=$(find "$dir/blocks" -name 'sh.*' | wc -l) shown=$(find "$dir/blocks" -name 'console.*' | wc -l)
  [ "$blocks" -ge 25 ] || mistake "only $blocks blocks"
  [ "$shown" -le 8 ] || mistake "$shown blocks of commands that nobody runs"
  [ "$(wc -l <README.md)" -le 120 ] || mistake "README.md has $(wc -l <README.md) lines"
fi

test_case "links lead to existing files and headings"
anchors_of() {
  sed -n '/^```/,/^```/d; s/^##* //p' "$1" | tr '[:upper:] ' '[:lower:]-' | tr -cd '[:alnum:]\n_-'
}
for document in "${documents[@]}" tools/containers/README.md; do
  while read -r link; do
    case $link in http*) continue ;; esac
    target=$(dirname "$document")/${link%%#*}
    [ "${link%%#*}" ] || target=$document
    [ -e "$target" ] || { mistake "$document links to $link"; continue; }
    [[ $link != *'#'* ]] || grep -qxF -- "${link#*#}" <(anchors_of "$target") || mistake "$document links to $link: no such heading"
  done < <(grep -oE '\]\([^) ]+\)' "$document" | sed 's/^](//; s/)$//')
done

test_case "paths that a document names exist"
# Files and directories of the sources, by their path from the top of the checkout; `*` may stand in it.
for document in "${documents[@]}"; do
  while read -r path; do
    compgen -G "${path//NAME/*}" >/dev/null || mistake "$document names $path, which is not there"
  done < <(grep -vE '^\[.*\]:' "$document" | grep -oE '(^|[^A-Za-z0-9_/.$-])(core|rdma|pcc|mad_cc|fs|tools|test|doc)/[A-Za-z0-9_./*-]*' |
    sed -E 's/^[^a-z]//; s/[.:]$//' | sort -u)
done

test_case "each document, page, scenario and example is named by a document"
for file in doc/*.md doc/man/* tools/scenarios/* tools/examples/*; do
  grep -qF "${file##*/}" README.md doc/{simulation,pcc,rigs}.md || mistake "no document names $file"
done

test_case "a text block that begins with NAME is in the reference word for word"
lines=0
while read -r file; do
  [[ $(<"$file") == NAME* ]] || continue
  lines=$((lines + 1))
  grep -qF "| $(xargs <"$file" | sed 's/|/\\|/g') |" tools/reference.md || mistake "not in tools/reference.md: $(xargs <"$file")"
done < <(find "$dir/blocks" -name 'text.*')
[ $# -gt 0 ] || [ "$lines" -ge 2 ] || mistake "only $lines lines that files take"

test_case "functions and types that a document names exist in the sources"
# A function that a table's row names beside files is in one of them; every room has a row.
while IFS= read -r row; do
  mapfile -t files < <(grep -oE '`[a-z_/-]+/[a-z_]+\.(cc|h)`' <<<"$row" | tr -d '`')
  [ ${#files[@]} -gt 0 ] || continue
  for function in $(grep -oE '`[a-z_]+\(\)`' <<<"$row" | tr -d '`()'); do
    grep -qs "\b$function(" "${files[@]}" || mistake "$function() is not in ${files[*]}"
  done
done < <(grep -h '^|' doc/architecture.md)
# Types that a document names, `Engine` or `Engine::call()`, exist, and have that function.
grep -rhoE '^ *(template <[^>]*> *)?(class|struct|enum class|using) +[A-Z][A-Za-z]+' core fs mad_cc pcc rdma tools | awk '{print $NF}' | sort -u >"$dir/types"
while read -r name; do
  grep -qx "${name%%::*}" "$dir/types" || mistake "${name%%::*} is no type of the sources"
  [[ $name != *::* ]] || grep -rqE "\b${name#*::}\(" --include='*.h' core fs mad_cc pcc rdma tools || mistake "there is no $name()"
done < <(grep -hoE '`[A-Z][a-z]+[A-Za-z]*(::[a-z_]+\(\))?`' doc/architecture.md doc/contributing.md | tr -d '`()' | sort -u)

test_case "architecture.md has the rooms of test/house/rooms in their order"
rooms_of_table() { sed -n '/^## Rooms/,/^## Proc/s/^| \(`[^|]*`\) |.*/\1/p' doc/architecture.md | tr -d '`,' | tr ' ' '\n'; }
difference=$(diff <(rooms_of_table) <(sed -n 's/^\([a-z][^:]*\):.*/\1/p' test/house/rooms)) ||
  mistake "rooms of doc/architecture.md (<) and of test/house/rooms (>), in their order:"$'\n'"$difference"
