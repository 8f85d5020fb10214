# A container as an engine makes it, without one: namespaces of its own, and in them a /sys of its network and a
# /dev that is a small file system of its own. container.bash DIR: DIR takes that /dev. Says its process id in
# DIR/pid, and waits to be killed.
set -euo pipefail
dir=$1
# It keeps no file system of this machine, which could not end before it.
awk '/ - fuse.rocefs /{print $5}' /proc/self/mountinfo | xargs -r umount -l 2>/dev/null || true  # a user's may not
mkdir -p "$dir/dev"
mount -t tmpfs -o mode=755 dev "$dir/dev"
for node in null zero urandom; do
  : >"$dir/dev/$node"
  mount --bind "/dev/$node" "$dir/dev/$node"
done
mount --rbind "$dir/dev" /dev
mount -t sysfs sysfs /sys
ip link set lo up
read -r pid _ </proc/self/stat
echo "$pid" >"$dir/pid.new"
mv "$dir/pid.new" "$dir/pid"
exec sleep 86400
