#!/bin/bash
# The tree keeps the rules of the house, and the check that says so finds each kind of breach.
set -eu
cd "$(dirname "$0")/../.."
test/house/check

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r Makefile .clang-format core rdma fs tools test "$copy"
finds() {  # FILE LINE-TO-ADD EXPECTED
  cp "$copy/$1" "$copy/kept"
  printf '%s\n' "$2" >>"$copy/$1"
  if out=$("$copy/test/house/check"); then echo "not found: $2 in $1"; exit 1; fi
  grep -qF "$3" <<<"$out" || { echo "found otherwise: $out"; exit 1; }
  mv "$copy/kept" "$copy/$1"
}
finds core/tree.cc '#include "rdma/qp.h"' 'core may not include rdma/qp.h'
finds rdma/wire/icrc.cc '#include "rdma/qp.h"' 'rdma/wire may not include rdma/qp.h'
finds fs/session.cc '#include "rdma/qp.h"' 'fs may not include rdma/qp.h'
finds rdma/qp.cc '#include "fs/session.h"' 'rdma may not include fs/session.h'
finds rdma/qp.cc '#include "rdma/provider/rocefs.h"' 'rdma may not include rdma/provider/rocefs.h'
finds rdma/provider/qp.c '#include "rdma/qp.h"' 'rdma/provider may not include rdma/qp.h'
finds rdma/uapi/uapi.h '#include "rdma/qp.h"' 'rdma/uapi may not include rdma/qp.h'
finds rdma/uapi/uapi.h '#include <stddef.h>' 'rdma/uapi may not include <stddef.h>'
finds rdma/qp.cc '#include <infiniband/verbs.h>' 'belongs to rdma/provider/'
finds rdma/qp.cc '#include <liburing.h>' 'belongs to core/io_ring.cc'
finds core/tree.cc '#include <fuse_lowlevel.h>' 'belongs to fs/'
finds rdma/qp.cc 'auto t = std::chrono::steady_clock::now();' 'wall time'
finds rdma/qp.cc '// FIX''ME later' 'promises more'
finds rdma/qp.cc "$(yes '// line' | head -500)" 'two nouns'
