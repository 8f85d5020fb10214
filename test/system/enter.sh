#!/bin/bash
# rocefs enter: a command sees a NIC in /sys, as root and as an ordinary user; other processes do not.
. "$(dirname "$0")/lib/common.bash"
PATH=$PATH:/usr/sbin
needs ibstat

# An ordinary user reaches the test's directory, with his own copy of the program.
open_to_users
install -m 755 "$ROCEFS" "$dir/rocefs"
enter() { "$ROCEFS" enter -m "$mnt" -- "$@"; }
user_enters() { as_user "$dir/rocefs" enter -m "$mnt" -- "$@"; }
may_root=true may_user=true
if ! $root || ! unshare -m true 2>/dev/null; then may_root=false; fi
if ! as_user unshare -U true 2>/dev/null || [[ $ROCEFS_BUILD == */tsan ]]; then
  may_user=false  # the thread of ThreadSanitizer is one too many for unshare(2)
fi
$may_root || $may_user || skip "neither mount nor user namespaces"

# State of the machine outside, and the readers.
outside=$dir/outside
mkdir -p "$outside/links"
for name in $(ls /sys/class/net); do touch "$outside/links/$name"; done
(cd /sys/class/net && for name in $(ls "$outside/links"); do readlink -e "$name"; done) >"$outside/net"
ls /sys/devices | sort >"$outside/devices"
ls /dev | sort >"$outside/dev"
cat /sys/class/net/lo/mtu >"$outside/mtu"
cat /sys/devices/system/cpu/online >"$outside/cpus"
cp "$lib"/{exporter,netlink}.py "$lib/inside.bash" "$outside"
"${CC:-cc}" -O1 -static -nostdlib -ffreestanding -fno-stack-protector -o "$outside/raw_reader" "$lib/raw_reader.c"

mounted $($root && echo "-o allow_other")
echo "f write mb_0 mb_1 count=100" >"$debug/traffic/start"
await state_is f "done"
echo 25G >"$debug/links/mb_0-sw_0/rate"
echo down >"$debug/links/mb_1-sw_0/state"
loss=$debug/links/sw_0-mb_0/loss

look() {  # WHO COMMAND…: with inside.bash as its arguments
  local who=$1
  shift
  echo 0 >"$loss"
  expect "0 seen" "$(SYSFS_PATH=/nowhere outcome_of "$@" bash "$outside/inside.bash" "$mnt" "$outside")" "$who"
  expect 0.25 "$(cat "$loss")" "$who: loss, outside"
}
# Enters as a user who is allowed to.
if $may_root; then may_enter() { enter "$@"; }; else may_enter() { user_enters "$@"; }; fi
# on_machine TEXT: in a new mount namespace, private or (for a chroot) not; with $mnt, $dir and `said`, which is outcome_of.
on_machine() {
  env ROCEFS="$ROCEFS" dir="$dir" mnt="$mnt" outside="$outside" \
    unshare -m bash -euo pipefail -c "said() { local status=0 text; text=\$(\"\$@\" 2>&1) || status=\$?; echo \"\$status \$text\"; }; $1" 2>&1
}
# A mount of the user who runs this, and the command that enters it.
his='$dir/rocefs $dir/his >/dev/null; $dir/rocefs enter -m $dir/his sh -c "ibstat -l; echo 0.5 >/sys/kernel/debug/rocefs/links/mb_0-sw_0/loss";
  cat $dir/his/kernel/debug/rocefs/links/mb_0-sw_0/loss; umount $dir/his 2>/dev/null || fusermount3 -u $dir/his'

test_case "root sees the NIC in /sys"
$may_root || skip "no mount namespaces for root"
look "root" enter

test_case "an ordinary user sees the NIC in /sys"
$may_user || skip "no user namespaces for users"
! $root || chmod 666 "$loss"
look "an ordinary user" user_enters
expect "$(as_user id -u) $(as_user id -g)" "$(user_enters sh -c 'echo $(id -u) $(id -g)')" "who he is"

test_case "a program that drops its user finds the engine, though debugfs is root's"
$root && $may_root && [ -d /sys/kernel/debug ] || skip "no mount namespaces for root, or no /sys/kernel/debug"
needs ibv_devinfo setpriv
unshare -m bash -euc 'mount -t tmpfs -o mode=700 none /sys/kernel/debug
  "$1" enter -m "$2" -- setpriv --reuid 65534 --regid 65534 --clear-groups ibv_devinfo -d mb_0' - "$ROCEFS" "$mnt" >"$dir/said" 2>&1 ||
  fail "$(cat "$dir/said")"
grep -q "hca_id:.*mb_0" "$dir/said" || fail "$(cat "$dir/said")"

test_case "others do not see the NIC meanwhile"
hidden_outside() {
  [ ! -e /sys/class/infiniband/mb_0 ] && [ ! -e /sys/class/net/enp43s0 ] || fail "the NIC is seen outside"
  ! grep -E ' /(sys|dev)/[^ ]* .* (fuse.rocefs|tmpfs rocefs-enter) ' /proc/self/mountinfo || fail "mounts are seen outside"
}
hidden_outside
coproc may_enter sh -c 'echo in; read line; ls -d /sys/class/infiniband/mb_0'
inside=$COPROC_PID
exec 5<&"${COPROC[0]}"  # the shell closes it when that has ended
read -r line <&5
hidden_outside
echo "go on" >&"${COPROC[1]}"
read -r line <&5
exec 5<&-
expect /sys/class/infiniband/mb_0 "$line" "inside, meanwhile"
wait "$inside"

test_case "the exit status is that of the command"
# The exit status is the command's; no process stands in between.
expect "0 " "$(outcome_of may_enter true)" "true"
expect "3 " "$(outcome_of may_enter sh -c 'exit 3')" "exit 3"
expect "137 " "$(outcome_of may_enter sh -c 'kill -KILL $$')" "killed"
expect "127 rocefs enter: no-such-command: No such file or directory" "$(PATH=/usr/bin:/bin outcome_of may_enter no-such-command)" "not found"
expect "126 rocefs enter: /etc/passwd: Permission denied" "$(outcome_of may_enter /etc/passwd)" "not executable"
expect "0 -m -h" "$(outcome_of may_enter echo -m -h)" "the command's own options"
expect "0 infiniband" "$(cd /sys/class && outcome_of may_enter ls -d infiniband)" "a working directory in /sys"
expect "0 mb_0 mb_1" "$(outcome_of may_enter "$dir/rocefs" enter sh -c 'echo $(ls /sys/class/infiniband)')" "enter within enter"

test_case "udevadm sees the NIC"
expect "0 0" "$(outcome_of may_enter sh -c 'echo $SYSTEMD_DEVICE_VERIFY_SYSFS')" "what udevadm is told"
needs udevadm
expect mb_0 "$(may_enter udevadm info --query=property --property=DEVPATH --value /sys/class/infiniband/mb_0 | sed 's|.*/||')" "udevadm"

test_case "a usage error is reported in one line"
usage() { echo "2 rocefs enter: $1"$'\n'"Try 'rocefs enter --help'."; }
expect "$(usage "a command is wanted")" "$(outcome_of "$ROCEFS" enter -m "$mnt")" "no command"
expect "$(usage "unknown option -x")" "$(outcome_of "$ROCEFS" enter -x true)" "-x"
expect "$(usage "unknown option --sys")" "$(outcome_of "$ROCEFS" enter --sys true)" "--sys"
expect "$(usage "-m requires a mount point")" "$(outcome_of "$ROCEFS" enter -m)" "-m alone"
expect "125 rocefs enter: $dir: no rocefs is mounted there" "$(outcome_of "$ROCEFS" enter -m "$dir" true)" "no mount"
expect "125 rocefs enter: $mnt/class: no rocefs is mounted there" "$(outcome_of "$ROCEFS" enter -m "$mnt/class" true)" "below the mount"
expect "125 rocefs enter: $dir/none: No such file or directory" "$(ROCEFS_MOUNT=$dir/none outcome_of "$ROCEFS" enter true)" "no such place"
expect "0 $mnt" "$(ROCEFS_MOUNT=$mnt outcome_of may_enter sh -c 'echo $ROCEFS_MOUNT')" "ROCEFS_MOUNT"
"$ROCEFS" --help | grep -q 'rocefs enter' || fail "--help says nothing of enter"
"$ROCEFS" enter --help | grep -q '^usage: rocefs enter \[-m MOUNTPOINT\]' || fail "enter --help"

test_case "libibverbs finds the provider installed with the program"
$may_root || skip "no mount namespaces for root"
drivers() { RDMAV_DRIVERS=rxe outcome_of "$1" enter -m "$mnt" sh -c 'echo "${RDMAV_DRIVERS-none}"'; }
installed=$dir/prefix/bin/rocefs
mkdir -p "$dir/prefix/bin" "$dir/prefix/lib/rocefs"
install -m 755 "$ROCEFS" "$installed"
expect "0 rxe" "$(drivers "$installed")" "drivers, without a provider"
touch "$dir/prefix/lib/rocefs/librocefs-rdmav34.so"
expect "0 $dir/prefix/lib/rocefs/librocefs:rxe" "$(drivers "$installed")" "drivers"
touch "$dir/prefix/lib/librocefs-rdmav34.so"
expect "0 $dir/prefix/lib/librocefs:rxe" "$(drivers "$installed")" "drivers of a build"
expect "0 $dir/prefix/lib/librocefs:siw" "$(unset RDMAV_DRIVERS; IBV_DRIVERS=siw outcome_of "$installed" enter -m "$mnt" \
  "$installed" enter -m "$mnt" sh -c 'echo $RDMAV_DRIVERS')" "drivers by their older name, entered twice"

test_case "the only live rocefs is found by the mount table"
$may_root || skip "no mount namespaces for root"
alone='for point in $(awk "/ fuse.rocefs /{print \$5}" /proc/self/mountinfo); do [ $point = "$mnt" ] || umount -l $point; done;'
expect "0 $mnt" "$(on_machine "$alone said \$ROCEFS enter sh -c 'echo \$ROCEFS_MOUNT'")" "the only one"
expect "0 $mnt" "$(on_machine "$alone mkdir -p \$dir/view; mount --bind \$mnt \$dir/view; said \$ROCEFS enter sh -c 'echo \$ROCEFS_MOUNT'")" \
  "two views of one"
expect "125 rocefs enter: no rocefs is mounted" "$(on_machine "$alone umount -l \$mnt; said \$ROCEFS enter true")" "none"
mkdir -p "$dir/second"
expect "125 rocefs enter: several rocefs are mounted: $mnt $dir/second: ROCEFS_MOUNT names one" \
  "$(on_machine "$alone \$ROCEFS \$dir/second >/dev/null; said \$ROCEFS enter true; umount \$dir/second")" "several"

test_case "the tree's files can be written where /sys is read-only"
$may_root || skip "no mount namespaces for root"
echo 0 >"$loss"
expect "0 seen" "$(on_machine 'mount -o remount,bind,ro /sys; said $ROCEFS enter -m $mnt bash $outside/inside.bash $mnt $outside')" \
  "a read-only /sys"
expect 0.25 "$(cat "$loss")" "a read-only /sys: loss"

test_case "the machine's RDMA devices are hidden, and nothing else of its /dev"
$may_root || skip "no mount namespaces for root"
devices='d=$dir/dev; mkdir -p $d; mount -t tmpfs none $d; mkdir -p $d/infiniband $d/pts; mknod $d/null c 1 3; mknod $d/zero c 1 5;
  mknod $d/infiniband/uverbs9 c 231 192; touch $d/infiniband/rdma_cm; mount --move $d /dev;'
expect $'0 issm0 issm1 rdma_cm umad0 umad1 uverbs0 uverbs1\ncharacter special file 1:3\ninfiniband null pts zero' \
  "$(on_machine "$devices said \$ROCEFS enter -m \$mnt sh -ec 'cd /dev; echo >infiniband/uverbs1; ls infiniband | xargs
    stat -Lc \"%F %Hr:%Lr\" infiniband/uverbs0; ls | xargs'")" "a machine with /dev/infiniband"

test_case "no mount leaks from a chroot that is not a mount point"
$may_root || skip "no mount namespaces for root"
# With mounts shared as systemd does it.
chroot='c=$dir/chroot; mkdir -p $c/{usr,proc,sys,dev,tmp,nic}; for d in bin sbin lib lib64; do ln -sfn usr/$d $c/$d; done;
  mount --rbind /usr $c/usr; mount -t proc proc $c/proc; mount --rbind /dev $c/dev; mount --bind $mnt $c/nic;
  cp -f $ROCEFS $c/tmp/rocefs; mount --make-rshared /;'
sees='sh -c "ibstat -l; cat /sys/class/net/lo/mtu; echo \$ROCEFS_MOUNT"'
leaks='grep -E " /[^ ]*/(sys|dev)/[^ ]* .* (fuse.rocefs|tmpfs rocefs-enter) " /proc/self/mountinfo || true'
expect "0 mb_0"$'\n'"mb_1"$'\n'"$(cat "$outside/mtu")"$'\n'"/nic" \
  "$(on_machine "$chroot mount --rbind -o ro /sys \$c/sys; said chroot \$c /tmp/rocefs enter $sees; $leaks")" "a chroot"
expect "125 rocefs enter: in this chroot neither / nor /sys is a mount point" \
  "$(on_machine "$chroot said chroot \$c /tmp/rocefs enter true; $leaks")" "a chroot without /sys"

test_case "an ordinary user enters a mount of his own"
$may_root && $may_user || skip "no user namespaces"
needs_setuid_fusermount
mkdir -p "$dir/his"
chown 65534:65534 "$dir/his"
expect $'mb_0\nmb_1\n0.5' "$(as_mounter env dir="$dir" sh -c "$his" 2>&1)" "his own mount"

test_case "the root of a user namespace enters a mount of his own"
$may_root && $may_user || skip "no user namespaces"
mkdir -p "$dir/his"
chown 65534:65534 "$dir/his"
expect $'mb_0\nmb_1\n0.5' "$(as_mounter env dir="$dir" unshare -Urm sh -c "$his" 2>&1)" "the root of a user namespace"

test_case "a command inside sees a NIC leave and come back"
# A NIC leaves and comes back: a command that is inside sees it, and so does one that enters meanwhile.
nic='echo $(ls /sys/class/infiniband; ls /dev/infiniband) $(cat /sys/class/net/enp43s0/address 2>/dev/null)'
expect "0 mb_0 mb_1 issm0 issm1 rdma_cm umad0 umad1 uverbs0 uverbs1 02:00:4c:6d:62:01,mb_1 issm1 rdma_cm umad1 uverbs1,mb_0 mb_1 issm0 issm1 rdma_cm umad0 umad1 uverbs0 uverbs1 02:00:4c:6d:62:01" \
  "$(outcome_of may_enter sh -ec "cd /sys/bus/pci/drivers/mango_core; $nic; echo 0000:2b:00.0 >unbind; $nic
    echo 0000:2b:00.0 >bind; $nic" | paste -sd,)" "unbind and bind, inside"
echo 0000:2b:00.0 >"$mnt/bus/pci/drivers/mango_core/unbind"
expect "mb_1,mb_0 mb_1" "$(may_enter sh -ec 'ibstat -l; cd /sys/bus/pci/drivers/mango_core
  echo 0000:2b:00.0 >bind; echo $(ibstat -l)' | paste -sd,)" "entered while it was away"

test_case "a user who may not read the mount may not enter it"
$root && $may_user || skip "neither mount namespaces for root nor user namespaces"
mounted
expect "125 rocefs enter: $mnt: another user's, mounted without -o allow_other" "$(outcome_of user_enters true)" "no allow_other"

test_case "a dead mount is reported"
mounted
kill_all
await sh -c "! ls '$mnt' >/dev/null 2>&1"
expect "125 rocefs enter: $mnt: its rocefs has ended" "$(outcome_of "$ROCEFS" enter -m "$mnt" true)" "a dead mount"
