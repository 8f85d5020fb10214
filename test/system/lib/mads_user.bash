# Use of infiniband-diags by a user: mads_user.bash ROCEFS MOUNTPOINT; mounts it if it is not
# mounted. Says `done`, or what failed.
set -euo pipefail
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/mads.bash"
rocefs=$1 mnt=$2
own=false
if ! mountpoint -q "$mnt"; then
  own=true
  "$rocefs" "$mnt" >/dev/null
fi
diags=("$rocefs" enter -m "$mnt" --)
tools_agree_with_the_tree
perfquery_agrees
trap - EXIT
! $own || fusermount3 -u "$mnt" 2>/dev/null || umount "$mnt"
echo "done"
