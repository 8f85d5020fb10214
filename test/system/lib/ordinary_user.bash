# as_user COMMAND…: as an ordinary user, `user` (65534), with a /dev/fuse that is open to all, as Debian has it,
# and that nobody else sees. Of a test that is not root: as who that is.
user=${user:-65534}
if [ "$(id -u)" -eq 0 ]; then
  unshare -m true 2>/dev/null || { echo "no mount namespaces"; exit 77; }
  mkdir "$dir/devices"
  as_user() {
    unshare -m bash -euo pipefail -c 'mount -t tmpfs -o mode=755 devices "$1/devices"
      mknod -m 666 "$1/devices/fuse" c 10 229
      mount --bind "$1/devices/fuse" /dev/fuse
      user=$2; shift 2; exec setpriv --reuid="$user" --regid="$user" --clear-groups "$@"' sh "$dir" "$user" "$@"
  }
else
  [ -w /dev/fuse ] || { echo "/dev/fuse is not open to users"; exit 77; }
  as_user() { "$@"; }
fi
