#!/bin/bash
# Whose rights open the files that a store names: those of whoever stored, as the daemon's own /proc
# shows them when the store arrives; also when clock/at keeps it until the writer has gone.
. "$(dirname "$0")/lib/common.bash"
needs_root "a writer of another user needs root here"
as_user unshare -Urm true 2>/dev/null || skip "no user namespaces"
open_to_users
mkdir "$dir/his" "$dir/mine"
chown 65534:65534 "$dir/his"
head -c 10000 /dev/urandom >"$dir/mine/secret"
chown 0:4242 "$dir/mine/secret"
chmod 640 "$dir/mine/secret"
cp "$dir/mine/secret" "$dir/his/own"
chmod 644 "$dir/his/own"
PATH=/usr/sbin:/usr/bin:/sbin:/bin  # which another user may run
export dir mnt debug lib ROCEFS PATH
# A process namespace, so that a number can be given twice, with its own /proc.
unshare --pid --fork --mount-proc --kill-child bash "$lib/identity.bash"
