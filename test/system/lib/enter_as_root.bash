# Part of enter.sh: machines that only root can make, each in a mount namespace of its own.

# MACHINE WHAT: a new mount namespace, private or (for a chroot) not; runs the text with $mnt, $dir ...
on_machine() {
  env ROCEFS="$ROCEFS" dir="$dir" mnt="$mnt" outside="$outside" \
    unshare -m bash -euo pipefail -c "said() { local status=0 text; text=\$(\"\$@\" 2>&1) || status=\$?; echo \"\$status \$text\"; }; $1" 2>&1
}

# The mount table: the only live rocefs, none, several.
alone='for point in $(awk "/ fuse.rocefs /{print \$5}" /proc/self/mountinfo); do [ $point = "$mnt" ] || umount -l $point; done;'
expect "0 $mnt" "$(on_machine "$alone said \$ROCEFS enter sh -c 'echo \$ROCEFS_MOUNT'")" "the only one"
expect "0 $mnt" "$(on_machine "$alone mkdir -p \$dir/view; mount --bind \$mnt \$dir/view; said \$ROCEFS enter sh -c 'echo \$ROCEFS_MOUNT'")" \
  "two views of one"
expect "125 rocefs enter: no rocefs is mounted" "$(on_machine "$alone umount -l \$mnt; said \$ROCEFS enter true")" "none"
mkdir -p "$dir/second"
expect "125 rocefs enter: several rocefs are mounted: $mnt $dir/second: ROCEFS_MOUNT names one" \
  "$(on_machine "$alone \$ROCEFS \$dir/second >/dev/null; said \$ROCEFS enter true; umount \$dir/second")" "several"

# /sys is read-only: what the tree has can still be written.
echo 0 >"$loss"
expect "0 seen" "$(on_machine 'mount -o remount,bind,ro /sys; said $ROCEFS enter -m $mnt bash $outside/inside.bash $mnt $outside')" \
  "a read-only /sys"
expect 0.25 "$(cat "$loss")" "a read-only /sys: loss"

# A machine that has RDMA devices: they are hidden, and nothing else of its /dev.
devices='d=$dir/dev; mkdir -p $d; mount -t tmpfs none $d; mkdir -p $d/infiniband $d/pts; mknod $d/null c 1 3; mknod $d/zero c 1 5;
  mknod $d/infiniband/uverbs9 c 231 192; touch $d/infiniband/rdma_cm; mount --move $d /dev;'
expect $'0 rdma_cm umad0 umad1 uverbs0 uverbs1\ncharacter special file 1:3\ninfiniband null pts zero' \
  "$(on_machine "$devices said \$ROCEFS enter -m \$mnt sh -ec 'cd /dev; echo >infiniband/uverbs1; ls infiniband | xargs
    stat -Lc \"%F %Hr:%Lr\" infiniband/uverbs0; ls | xargs'")" "a machine with /dev/infiniband"

# A chroot that is no mount point, with mounts shared as systemd does it: nothing of it leaks.
chroot='c=$dir/chroot; mkdir -p $c/{usr,proc,sys,dev,tmp,nic}; for d in bin sbin lib lib64; do ln -sfn usr/$d $c/$d; done;
  mount --rbind /usr $c/usr; mount -t proc proc $c/proc; mount --rbind /dev $c/dev; mount --bind $mnt $c/nic;
  cp -f $ROCEFS $c/tmp/rocefs; mount --make-rshared /;'
sees='sh -c "ibstat -l; cat /sys/class/net/lo/mtu; echo \$ROCEFS_MOUNT"'
leaks='grep -E " /[^ ]*/(sys|dev)/[^ ]* .* (fuse.rocefs|tmpfs rocefs-enter) " /proc/self/mountinfo || true'
expect "0 mb_0"$'\n'"mb_1"$'\n'"$(cat "$outside/mtu")"$'\n'"/nic" \
  "$(on_machine "$chroot mount --rbind -o ro /sys \$c/sys; said chroot \$c /tmp/rocefs enter $sees; $leaks")" "a chroot"
expect "125 rocefs enter: in this chroot neither / nor /sys is a mount point" \
  "$(on_machine "$chroot said chroot \$c /tmp/rocefs enter true; $leaks")" "a chroot without /sys"

# An ordinary user mounts, and enters, what is his; so does the root of a user namespace.
if $may_user && [ -e /etc/mtab ]; then
  fuse="mknod \$dir/fuse c 10 229; chmod 666 \$dir/fuse; mount --bind \$dir/fuse /dev/fuse; mkdir -p \$dir/his; chown 65534:65534 \$dir/his;
    nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups \"\$@\"; };"
  his='$dir/rocefs $dir/his >/dev/null; $dir/rocefs enter -m $dir/his sh -c "ibstat -l; echo 0.5 >/sys/kernel/debug/rocefs/links/mb_0-sw_0/loss";
    cat $dir/his/kernel/debug/rocefs/links/mb_0-sw_0/loss; umount $dir/his 2>/dev/null || fusermount3 -u $dir/his'
  if [ -u "$(command -v fusermount3)" ]; then
    expect $'mb_0\nmb_1\n0.5' "$(on_machine "$fuse nobody env dir=\$dir sh -c '$his'; rm \$dir/fuse")" "his own mount"
  else
    left_out "an ordinary user's own mount: fusermount3 is not setuid"
  fi
  expect $'mb_0\nmb_1\n0.5' "$(on_machine "$fuse nobody env dir=\$dir unshare -Urm sh -c '$his'; rm \$dir/fuse")" "the root of a user namespace"
else
  left_out "an ordinary user's own mount: no user namespaces"
fi
