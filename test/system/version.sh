#!/bin/bash
# One version in all places, and the numbers of the interfaces: a program and an engine of two versions refuse each
# other and say why, each at its end.
. "$(dirname "$0")/lib/common.bash"
top=$(realpath "$(dirname "$0")/../..")
cd "$top"
bin=$(dirname "$ROCEFS")
version=$(sed -n 's/^VERSION := //p' Makefile)
number_in() { sed -nE "s/.*\b$1( =)? ([0-9]+).*/\2/p" "$2"; }  # NAME FILE
uapi=$(number_in ROCEFS_UAPI_VERSION rdma/uapi/uapi.h)

test_case "programs, packages, pages and the changelog have one version"
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "the Makefile's version: '$version'"
expect "rocefs $version" "$("$ROCEFS" --version | head -n 1)" "rocefs --version"
for command in top view; do
  expect "0 rocefs $version" "$(outcome_of "$ROCEFS" $command --version)" "rocefs $command --version"
done
for command in enter host attach detach run wait sim; do
  expect "$("$ROCEFS" --version)" "$("$ROCEFS" $command --version)" "rocefs $command --version"
  expect "$("$ROCEFS" --version)" "$("$ROCEFS" $command -V)" "rocefs $command -V"
done
expect "mango-ctl $version (rocefs)" "$("$bin/mango-ctl" --version)" "mango-ctl --version"
expect "mango-pccd $version (rocefs)" "$("$bin/mango-pccd" --version)" "mango-pccd --version"
expect "$version" "$(sed -nE '1s/rocefs \((.*)\) .*/\1/p' debian/changelog)" "debian/changelog"
expect "$version" "$(sed -nE 's/^## ([^ ]*) .*/\1/p' doc/changelog.md | head -n 1)" "doc/changelog.md"
for page in doc/man/* tools/mango-ctl/mango-ctl.1.in; do
  [[ $(head -n 1 "$page") == ".TH "*'"rocefs @VERSION@" "rocefs"' ]] || mistake "$page: $(head -n 1 "$page")"
done
! grep -rnE --include='*.cc' --include='*.h' --include='*.in' "\b${version//./\\.}\b" core fs mad_cc pcc rdma tools || fail "written out"

test_case "a release has one day in both changelogs"
day=$(sed -nE 's/^ -- .*  (.*)/\1/p' debian/changelog | head -n 1)
expect "$(date -u -d "$day" +%F)" "$(sed -nE 's/^## [^ ]* \((.*)\)/\1/p' doc/changelog.md | head -n 1)" "the day"

test_case "rocefs --version tells what it was built with, and the interfaces' numbers"
said=$("$ROCEFS" --version)
grep -qE '^built with (g\+\+|.*[Cc]lang) [0-9]+\.[0-9.]+.*, fuse3 [0-9.]+, liburing [0-9.]+, fmt [0-9.]+' <<<"$said" || fail "built with: $said"
providers=$(for file in "$ROCEFS_BUILD"/lib/librocefs-rdmav*.so; do file=${file##*-rdmav}; echo "${file%.so}"; done | sort -n | xargs)
expect "interfaces: tree $(number_in kTreeAbi core/version/version.h), programs $uapi, register pages $(number_in \
  ROCEFS_REGISTERS_VERSION rdma/uapi/registers.h); providers for libibverbs' $providers" "$(sed -n 2p <<<"$said")" "interfaces"

test_case "doc/abi.md has the numbers"
for row in "programs of verbs, librdmacm and libmango with the engine:$uapi" \
  "the tree: files, what they take and show:$(number_in kTreeAbi core/version/version.h)" \
  "plugins of congestion control:$(number_in MANGO_PLUGIN_ABI pcc/api/libmango.h)" \
  "register pages of congestion control:$(number_in ROCEFS_REGISTERS_VERSION rdma/uapi/registers.h)"; do
  grep -qF "| ${row%:*} | ${row##*:} |" doc/abi.md || mistake "doc/abi.md does not say: ${row%:*} ${row##*:}"
done

test_case "a mount tells its version and that of the tree"
mounted
expect "$version" "$(cat "$debug/version")" "version"
expect "$(number_in kTreeAbi core/version/version.h)" "$(cat "$debug/abi")" "abi"

# The liar shows the program an engine of the next version, and the engine a program of the one before.
liar="$ROCEFS_BUILD/test/lies/liar.so"
theirs="the engine speaks version $((uapi + 1)) of the interface for programs"
refused() {  # WHAT
  local before=$1
  [ "$(grep -c "is refused: this engine speaks version $uapi of the interface for programs, it $((uapi - 1))\$" "$debug/dmesg")" -gt "$before" ]
}
refusals() { grep -c "is refused: this engine speaks" "$debug/dmesg" || true; }

test_case "a verbs program and an engine of two versions refuse each other and name both"
needs ibv_devinfo
needs_enter
needs_provider
before=$(refusals)
said=$(outcome_of "$ROCEFS" enter -m "$mnt" -- env LIE=versions LD_PRELOAD="$liar" ibv_devinfo -d mb_0)
[[ $said != 0* ]] || fail "opened: $said"
[[ $said == *"rocefs: mb_0: /sys/kernel/debug/rocefs/uapi: $theirs, this provider version $uapi: "* ]] || fail "the program says: $said"
await refused "$before"

test_case "a program of librdmacm is told as well"
needs rping
before=$(refusals)
said=$(outcome_of timeout 20 "$ROCEFS" enter -m "$mnt" -- env LIE=versions LD_PRELOAD="$liar" rping -c -a 10.77.0.2 -p 7999)
[[ $said != 0* && $said == *"$theirs, this provider version $uapi"* ]] || fail "the program says: $said"
await refused "$before"

test_case "libmango and an engine of two versions refuse each other and name both"
before=$(refusals)
said=$(ROCEFS_MOUNT=$mnt outcome_of env LIE=versions LD_PRELOAD="$liar" "$ROCEFS_BUILD/test/lies/pcc_program")
[[ $said != 0* && $said == *"libmango: $mnt: $theirs, this libmango version $uapi"* ]] || fail "the program says: $said"
await refused "$before"

test_case "a client that does not look at the greeting is refused by its first request, and told why"
needs python3
for other in $((uapi - 1)) $((uapi + 1)) 4294967295; do
  before=$(refusals)
  said=$(python3 "$lib/other_version.py" "$debug/uapi" "$other")
  expect "EPROTO this engine speaks version $uapi of the interface for programs, it $other" "$said" "version $other"
  expect $((before + 1)) "$(refusals)" "lines in dmesg"
done
