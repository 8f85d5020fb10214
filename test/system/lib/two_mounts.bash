# Two network namespaces joined by veth, for a mount in each. A script that reads this runs itself once
# more in namespaces of its own, as root or as the root of a user namespace; there it calls
# `joined_namespaces` after common.bash.

# has_namespaces [TOOL…]: ends the script as skipped where they, or a tool, are missing; else $spaces is
# the command that makes them.
has_namespaces() {
  local tool
  for tool in ip unshare nsenter "$@"; do
    command -v "$tool" >/dev/null || { echo "no $tool here"; exit 77; }
  done
  spaces=(unshare -n)
  [ "$(id -u)" -eq 0 ] || spaces=(unshare -Urmn)
  "${spaces[@]}" ip link add probe type veth peer name eborp 2>/dev/null || { echo "no network namespaces with veth"; exit 77; }
}

# The near mount, $mnt, and 10.9.0.1 are in this namespace; the far one, $far, and 10.9.0.2 in that of a sleeping
# process, in which `remote` runs a command.
far=$ROCEFS_TEST_DIR/far
remote() { nsenter -t $there -n "$@"; }
apart() { [ "$(readlink /proc/$there/ns/net)" != "$(readlink /proc/self/ns/net)" ]; }
far_mounted() { remote "$ROCEFS" "$@" "$far" >/dev/null; }  # [OPTION…]
leave_namespaces() {
  local where
  for where in "$mnt" "$far"; do fusermount3 -u "$where" 2>/dev/null || umount -l "$where" 2>/dev/null || true; done
  [ -z "${there:-}" ] || kill "$there" 2>/dev/null || true
}
joined_namespaces() {
  at_end leave_namespaces
  mkdir "$far"
  unshare -n sleep 600 &
  there=$!
  await apart
  ip link add near mtu 4200 type veth peer name far mtu 4200 netns $there
  ip addr add 10.9.0.1/24 dev near
  remote ip addr add 10.9.0.2/24 dev far
  ip link set lo up
  remote ip link set lo up
  ip link set near up
  remote ip link set far up
}
