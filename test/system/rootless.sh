#!/bin/bash
# Without root and without a setuid program: an ordinary user's rocefs in a user namespace of his own.
. "$(dirname "$0")/lib/common.bash"
[[ $ROCEFS_BUILD != */tsan ]] || skip "the thread of ThreadSanitizer is one too many for unshare(2)"

open_to_users
install -m 755 "$ROCEFS" "$dir/rocefs"
install -m 644 "$lib"/{cases,common,rootless}.bash "$dir"
provider=$(dirname "$ROCEFS")/../lib/librocefs-rdmav34.so
mkdir "$dir/lib" "$dir/own"
[ ! -e "$provider" ] || install -m 644 "$provider" "$dir/lib"
alone() {  # COMMAND…: as who is root of a new user namespace, and an ordinary user outside
  ROCEFS=$dir/rocefs ROCEFS_TEST_DIR=$dir/own unshare --user --map-root-user --mount --pid --fork --mount-proc "$@"
}
needs_mounters
[ "$(id -u)" -ne 0 ] || chown "$user:$user" "$dir/own"
export -f alone
export dir
as_mounter bash -c 'alone true' 2>/dev/null || skip "no user namespaces for users"

test_case "a mount works in a user namespace of an ordinary user"
as_mounter bash -c 'alone bash "$dir/rootless.bash"' || fail "in a user namespace: status $?"
