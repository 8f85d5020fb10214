#!/bin/bash
# The tree keeps the rules of the house, and the check that says so finds each kind of breach.
set -eu
cd "$(dirname "$0")/../.."
test/house/check

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
# What is whole has just been seen: the copy has but the files that are broken.
cp --parents Makefile .clang-format test/house/check "$copy"
mkdir "$copy/tools"
expected=()
breaks() {  # FILE LINE-TO-ADD EXPECTED
  [ -e "$copy/$1" ] || cp --parents "$1" "$copy"
  printf '%s\n' "$2" >>"$copy/$1"
  expected+=("$1:[0-9]*: .*$3")
}
breaks core/tree.cc '#include "rdma/qp.h"' 'core may not include rdma/qp.h'
breaks rdma/wire/icrc.cc '#include "rdma/qp.h"' 'rdma/wire may not include rdma/qp.h'
breaks fs/session.cc '#include "rdma/qp.h"' 'fs may not include rdma/qp.h'
breaks rdma/qp.cc '#include "fs/session.h"' 'rdma may not include fs/session.h'
breaks rdma/qp.cc '#include "rdma/provider/rocefs.h"' 'rdma may not include rdma/provider/rocefs.h'
breaks rdma/provider/qp.c '#include "rdma/qp.h"' 'rdma/provider may not include rdma/qp.h'
breaks rdma/uapi/uapi.h '#include "rdma/qp.h"' 'rdma/uapi may not include rdma/qp.h'
breaks rdma/uapi/uapi.h '#include <stddef.h>' 'rdma/uapi may not include <stddef.h>'
breaks rdma/qp.cc '#include <infiniband/verbs.h>' 'belongs to rdma/provider/'
breaks rdma/qp.cc '#include <liburing.h>' 'belongs to core/io_ring.cc'
breaks core/tree.cc '#include <fuse_lowlevel.h>' 'belongs to fs/'
breaks rdma/qp.cc 'auto t = std::chrono::steady_clock::now();' 'wall time'
breaks rdma/qp.cc '// FIX''ME later' 'promises more'
breaks rdma/qp.cc "$(yes '// line' | head -500)" 'two nouns'
breaks mad_cc/mad.h '#include "rdma/qp.h"' 'mad_cc may not include rdma/qp.h'
breaks core/tree.cc 'int  two_blanks ;' 'not formatted'
touch "$copy/c0"
expected+=("c0:1: an empty file")

if found=$("$copy/test/house/check"); then echo "a house of breaches passes"; exit 1; fi
for breach in "${expected[@]}"; do
  grep -q "$breach" <<<"$found" || { echo "not found: $breach in: $found"; exit 1; }
done
