# Checks of what a command sees under `rocefs enter`: inside.bash MOUNTPOINT OUTSIDE, where the directory OUTSIDE
# has what was seen before (net, devices, mtu) and the readers (raw_reader, exporter.py, netlink.py).
# Ends with the first thing that is not as it should be.
set -euo pipefail
mnt=$1 outside=$2
fail() { echo "FAILED inside: $*"; exit 1; }
expect() {  # WANTED GOT WHAT
  [ "$1" = "$2" ] || fail "$3: wanted '$1', got '$2'"
}

# Debian's tools, unmodified. mb_0's link has 25 Gb/s, mb_1's is down.
command -v ibstat >/dev/null || PATH=$PATH:/usr/sbin
columns() { awk -F': ' "/^\t\t($1):/ {print \$2}" | paste -sd' '; }
expect "mb_0 mb_1" "$(ibstat -l | xargs)" "ibstat -l"
expect "Active LinkUp 25 Ethernet" "$(ibstat mb_0 | columns 'State|Physical state|Rate|Link layer')" "ibstat mb_0"
expect "Down Disabled 10 Ethernet" "$(ibstat mb_1 | columns 'State|Physical state|Rate|Link layer')" "ibstat mb_1"
expect "Infiniband device 'mb_0' port 1 status: 4: ACTIVE 5: LinkUp 25 Gb/sec (1X EDR) Ethernet" \
  "$(ibstatus mb_0 | sed -nE "/^Inf/p; s/\t(state|phys state|rate|link_layer):\t+ //p" | paste -sd' ')" "ibstatus mb_0"
expect "'mb_0' 'mb_1'" "$(ibstatus | sed -n "s/^Infiniband device \('.*'\) port.*/\1/p" | xargs -d '\n')" "ibstatus"

# node_exporter's way. 100 requests of 16 packets went from mb_0 to mb_1 before; what was lost by
# chance of the clock was sent again.
ports=$(python3 "$outside/exporter.py")
expect "mb_0 1 4 5 25,mb_1 1 1 3 10" "$(cut -d' ' -f1-5 <<<"$ports" | paste -sd,)" "exporter"
[ "$(awk '/mb_0/ {print $6}' <<<"$ports")" -ge 1600 ] || fail "mb_0 sent too little: $ports"
[ "$(awk '/mb_1/ {print $7}' <<<"$ports")" -ge 100 ] || fail "mb_1 received too little: $ports"

# Each kind of reader gets the same bytes.
files=$(cd "$mnt" && find devices -type f -size +0 -perm -444 -path '*:00.0/*' ! -path '*/gid_attrs/*' | sort)
[ "$(wc -l <<<"$files")" -gt 80 ] || fail "only these files: $files"
in_tree=$(cd "$mnt" && cat $files | cksum)
cd /sys
expect "$in_tree" "$(cat $files | cksum)" "cat"
texts=$(grep -v '/config$' <<<"$files")  # bash has no lines with NUL octets
expect "$(cd "$mnt" && cat $texts | cksum)" \
  "$(for file in $texts; do while IFS= read -r line; do printf '%s\n' "$line"; done <"$file"; done | cksum)" "read"
if [ -x "$outside/raw_reader" ]; then
  expect "$in_tree" "$("$outside/raw_reader" $files | cksum)" "system calls alone"
fi
if busybox=$(command -v busybox) && ! ldd "$busybox" >/dev/null 2>&1; then
  expect "$in_tree" "$("$busybox" cat $files | cksum)" "static busybox"
fi

# Links lead through /sys, as a kernel's.
pci=devices/pci0000:2b/0000:2b:00.0
expect "/sys/$pci/infiniband/mb_0" "$(realpath class/infiniband/mb_0)" "mb_0"
expect "/sys/$pci/net/enp43s0" "$(realpath class/net/enp43s0)" "enp43s0"
expect "/sys/$pci" "$(realpath class/infiniband/mb_0/device bus/pci/devices/0000:2b:00.0 | uniq)" "the PCI device"
expect "/sys/bus/pci/drivers/mango_core" "$(realpath $pci/driver)" "its driver"
expect "$(ls "$mnt/bus/pci/drivers/mango_core")" "$(ls bus/pci/drivers/mango_core)" "mango_core"
[ -r kernel/debug/rocefs/seed ] || fail "no kernel/debug/rocefs"

# Files of the machine are still there, and their links lead where they led.
expect "$(cat "$outside/net")" "$(cd class/net && for name in $(ls "$outside/links"); do readlink -e $name; done)" "class/net"
expect "" "$(ls devices | sort | comm -13 - "$outside/devices")" "missing in /sys/devices"
expect "$(cat "$outside/mtu")" "$(cat class/net/lo/mtu)" "lo"
expect "$(cat "$outside/cpus")" "$(cat devices/system/cpu/online)" "cpu/online"
if mkdir class/made_inside 2>/dev/null; then fail "made a directory in /sys/class"; fi

# The devices of libibverbs: what is opened is /dev/null, which is the machine's still.
expect "uverbs0 uverbs1" "$(cd /dev/infiniband && echo uverbs*)" "/dev/infiniband"
for name in uverbs0 uverbs1; do
  expect "character special file 1:3" "$(stat -Lc '%F %Hr:%Lr' /dev/infiniband/$name)" "$name"
  expect 1:3 "$(cat class/infiniband_verbs/$name/dev)" "$name/dev"
  { echo >&3; expect "" "$(cat <&3)" "$name, read"; } 3<>/dev/infiniband/$name
done
expect "" "$(ls /dev | sort | comm -13 - "$outside/dev")" "missing in /dev"
expect "crw" "$(stat -Lc %A /dev/ptmx /dev/null /dev/tty | cut -c1-3 | uniq)" "/dev/ptmx, /dev/null, /dev/tty"
python3 -c 'import os; os.openpty()' || fail "no terminals"

expect ESOCKTNOSUPPORT "$(python3 "$outside/netlink.py" 20)" "NETLINK_RDMA"
expect ESOCKTNOSUPPORT "$(python3 "$outside/netlink.py" 0)" "another netlink"
expect "$mnt" "$ROCEFS_MOUNT" "ROCEFS_MOUNT"
expect "" "${SYSFS_PATH-}" "SYSFS_PATH"
echo 0.25 >kernel/debug/rocefs/links/sw_0-mb_0/loss
echo seen
