# Use of verbs programs by a user: verbs_user.bash ROCEFS MOUNTPOINT DIRECTORY PROGRAMS, which is
# a function of verbs.bash; mounts it if it is not mounted. Says `done`, or what failed.
set -euo pipefail
. "$(dirname "$0")/common.bash"
. "$(dirname "$0")/verbs.bash"
rocefs=$1 mnt=$2 logs=$3 programs=$4
own=false
if ! mountpoint -q "$mnt"; then
  own=true
  "$rocefs" "$mnt" >/dev/null
fi
verbs=("$rocefs" enter -m "$mnt" --)
"$programs"
trap - EXIT
! $own || fusermount3 -u "$mnt" 2>/dev/null || umount "$mnt"
echo "done"
