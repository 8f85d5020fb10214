# A fresh Debian for the tests of packages. $packages is the directory of the packages; in $root is then a Debian of this
# script's own, with the packages in /given. It is a copy of $packages/debian, which debootstrap makes once, from the
# machine's own sources of packages.
set -euo pipefail
top=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
[ "$(id -u)" -eq 0 ] || { echo "rocefs: a fresh Debian is made by root" >&2; exit 1; }
[ -e /dev/fuse ] || { echo "rocefs: no /dev/fuse here" >&2; exit 1; }
say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }

debian() {  # makes $packages/debian
  [ ! -e "$packages/debian/.whole" ] || return 0
  local site
  site=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Codename: bookworm' | head -n 1)
  say "debootstrap"
  rm -rf --one-file-system "$packages/debian"
  debootstrap --variant=minbase --include=ca-certificates bookworm "$packages/debian" "$site" >"$packages/debootstrap.log" ||
    { tail -n 5 "$packages/debootstrap.log" >&2; exit 1; }
  rm -f "$packages"/debian/var/cache/apt/archives/*.deb
  cp -L /etc/resolv.conf /etc/hosts "$packages/debian/etc"
  ln -sf /proc/self/mounts "$packages/debian/etc/mtab"  # as a machine has it that was booted
  touch "$packages/debian/.whole"
}

fresh_root() {
  debian
  root=$(mktemp -d)
  trap 'rm -rf --one-file-system "$root"' EXIT
  chmod 755 "$root"
  cp -a --one-file-system "$packages/debian/." "$root"
  rm "$root/.whole"
  mkdir -p "$root/given"
  cp "$packages"/{rocefs,libmango1,libmango-dev}_*.deb "$root/given"
}

# Runs a script of the root in it. It is no chroot(2), in which the kernel makes no user namespaces.
inside() {  # SCRIPT
  SCRIPT=$1 BEGUN=$SECONDS exec_in=$root unshare --mount --pid --fork --kill-child bash -euo pipefail -c '
  cd "$exec_in"
  mount --bind . .
  cd "$exec_in"
  mount -t tmpfs -o mode=755 dev dev
  for node in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0 fuse:10:229; do
    IFS=: read -r name major minor <<<"$node"
    mknod -m 666 "dev/$name" c "$major" "$minor"
  done
  mkdir -m 755 dev/pts dev/shm dev/net
  mknod -m 666 dev/net/tun c 10 200
  ln -s /proc/self/fd dev/fd
  mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
  mount -t tmpfs -o mode=1777 shm dev/shm
  mount -t proc proc proc
  mount --rbind /sys sys
  mkdir -p old
  pivot_root . old
  umount -l /old
  rmdir /old
  cd /
  exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} SECONDS_BEFORE="$BEGUN" bash "$SCRIPT"'
}
