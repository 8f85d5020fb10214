#!/bin/bash
# The tree keeps the rules of the house, and the check that says so finds each kind of breach.
set -eu
cd "$(dirname "$0")/../.."
test/house/check

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
# The whole tree has just been checked: the copy has only the files that are broken.
cp --parents Makefile .clang-format test/house/check test/house/rooms rdma/wire/ip_text.h "$copy"
mkdir "$copy/tools"
expected=()
breaks() {  # FILE LINE-TO-ADD EXPECTED
  [ -e "$copy/$1" ] || cp --parents "$1" "$copy"
  printf '%s\n' "$2" >>"$copy/$1"
  expected+=("$1:[0-9]*: .*$3")
}
breaks core/tree/tree.cc '#include "rdma/transport/qp.h"' 'core/tree may not include rdma/transport/qp.h'
breaks rdma/wire/icrc.cc '#include "rdma/transport/qp.h"' 'rdma/wire may not include rdma/transport/qp.h'
breaks fs/session.cc '#include "rdma/transport/qp.h"' 'fs may not include rdma/transport/qp.h'
breaks rdma/transport/qp.cc '#include "fs/session.h"' 'rdma/transport may not include fs/session.h'
breaks rdma/transport/qp.cc '#include "rdma/provider/rocefs.h"' 'rdma/transport may not include rdma/provider/rocefs.h'
breaks rdma/provider/qp.c '#include "rdma/transport/qp.h"' 'rdma/provider may not include rdma/transport/qp.h'
breaks rdma/uapi/uapi.h '#include "rdma/transport/qp.h"' 'rdma/uapi may not include rdma/transport/qp.h'
breaks rdma/uapi/uapi.h '#include <stddef.h>' 'rdma/uapi may not include <stddef.h>'
breaks rdma/transport/qp.cc '#include <infiniband/verbs.h>' 'belongs to rdma/provider/'
breaks rdma/transport/qp.cc '#include <liburing.h>' 'belongs to core/loop/io_ring.cc'
breaks core/tree/tree.cc '#include <fuse_lowlevel.h>' 'belongs to fs/'
breaks rdma/transport/qp.cc 'auto t = std::chrono::steady_clock::now();' 'wall time'
breaks rdma/transport/qp.cc '// FIX''ME later' 'promises more'
breaks rdma/transport/qp.cc "$(yes '// line' | head -500)" 'two nouns'
breaks rdma/transport/requester.cc '#include "rdma/nic/port.h"' 'rdma/transport may not include rdma/nic/port.h'
breaks rdma/packet/packet.h '#include "rdma/transport/qp.h"' 'rdma/packet may not include rdma/transport/qp.h'
breaks mad_cc/mad/mad.h '#include "rdma/transport/qp.h"' 'mad_cc/mad may not include rdma/transport/qp.h'
breaks mad_cc/net/subnet.h '#include "mad_cc/port/mad_port.h"' 'mad_cc/net may not include mad_cc/port/mad_port.h'
breaks core/tree/tree.cc 'int  two_blanks ;' 'not formatted'
breaks core/tree/tree.cc '// Whoever comes' 'comment begins with "whoever"'
breaks rdma/uapi/uapi.h '/* Its own */' 'comment begins with "its"'
breaks rdma/wire/ip.h '#include "rdma/wire/ip_text.h"' 'includes itself, through others'
mkdir "$copy/rdma/hall"
echo >"$copy/rdma/hall/guest.cc"
expected+=("rdma/hall/guest.cc:1: rdma/hall is no room")
touch "$copy/c0"
expected+=("c0:1: an empty file")

if found=$("$copy/test/house/check"); then echo "a house of breaches passes"; exit 1; fi
for breach in "${expected[@]}"; do
  grep -q "$breach" <<<"$found" || { echo "not found: $breach in: $found"; exit 1; }
done
