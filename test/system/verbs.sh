#!/bin/bash
# Verbs programs as they come from the distribution: under rocefs enter, as root and as ordinary users,
# and without it.
. "$(dirname "$0")/lib/common.bash"
. "$lib/verbs.bash"
needs ibv_rc_pingpong
logs=$dir

mounted
verbs=("$ROCEFS" enter -m "$mnt" --)
needs_enter
guid() { tr -d : <"$ib/$1/$2"; }
number() { grep -om1 '[0-9]*' "$ib/$1"; }
open_files() { readlink "/proc/$(worker_pid)/fd/"* | grep -cE 'rocefs-(context|queue)|pidfd' || true; }
copy_threads() { cat "/proc/$(worker_pid)/task/"*/comm 2>/dev/null | grep -c rocefs-copy || true; }
nothing_left() { [ "$(open_files) $(copy_threads)" = "0 0" ]; }
# Programs and scripts that an ordinary user can reach.
home=$dir/user
use="bash $home/verbs_user.bash $home/bin/rocefs"
needs_other_users() {
  needs_root
  needs_user_namespaces
  [ ! -e "$home" ] || return 0
  open_to_users
  mkdir -p "$home"/{bin,lib,mnt} "$dir/logs"
  install -m 755 "$ROCEFS" "$home/bin/rocefs"
  install -m 755 "$ROCEFS_BUILD/lib/librocefs-rdmav34.so" "$home/lib"
  cp "$lib"/*.bash "$home"
  chown -R 65534:65534 "$home" "$dir/logs"
}

test_case "the tools show the devices as the tree does"
expect "mb_0 mb_1" "$("${verbs[@]}" ibv_devices | awk 'NR > 2 {print $1}' | xargs)" "ibv_devices"
for device in mb_0 mb_1; do
  expect "$(guid $device node_guid)" "$("${verbs[@]}" ibv_devices | awk -v d=$device '$1 == d {print $2}')" "ibv_devices $device"
  "${verbs[@]}" ibv_devinfo -v -d $device >"$dir/info"
  info() { sed -n "s/^[[:space:]]*$1:[[:space:]]*//p" "$dir/info" | sed 's/[[:space:]]*$//' | head -n 1; }
  tree=$ib/$device
  expect "$device" "$(info hca_id)" "hca_id"
  expect "$(cat "$tree/fw_ver")" "$(info fw_ver)" "$device: fw_ver"
  expect "$(guid $device node_guid)" "$(info node_guid | tr -d :)" "$device: node_guid"
  expect "$(guid $device sys_image_guid)" "$(info sys_image_guid | tr -d :)" "$device: sys_image_guid"
  expect "$(cat "$tree/board_id")" "$(info board_id)" "$device: board_id"
  expect "$(cat "$tree/device/vendor")" "$(info vendor_id | sed 's/0x0*/0x/')" "$device: vendor_id"
  expect "$(ls "$tree/ports" | wc -l)" "$(info phys_port_cnt)" "$device: ports"
  expect "PORT_ACTIVE ($(number "$device/ports/1/state"))" "$(info state)" "$device: state"
  expect "LINK_UP ($(number "$device/ports/1/phys_state"))" "$(info phys_state)" "$device: phys_state"
  expect "$(cat "$tree/ports/1/link_layer")" "$(info link_layer)" "$device: link_layer"
  expect "4096 (5)" "$(info active_mtu)" "$device: active_mtu"
  expect "ATOMIC_HCA (1)" "$(info atomic_cap)" "$device: atomic_cap"
  expect "128 128" "$(info max_qp_rd_atom) $(info max_qp_init_rd_atom)" "$device: READs and atomics in flight"
  for index in 0 1; do
    gid=$(cat "$tree/ports/1/gids/$index")
    address=$(python3 -c 'import ipaddress, sys; print(ipaddress.IPv6Address(sys.argv[1]).packed.hex())' "$gid")
    told=$(info "GID\[ *$index\]")
    told=${told%%,*}
    expect "$address" "$(python3 -c 'import ipaddress, sys; print(ipaddress.IPv6Address(sys.argv[1]).packed.hex())' "$told")" \
      "$device: GID $index"
  done
done

test_case "a port that is down is reported"
echo down >"$debug/links/mb_1-sw_0/state"
expect "PORT_DOWN (1)" "$("${verbs[@]}" ibv_devinfo -d mb_1 | sed -n 's/^[[:space:]]*state:[[:space:]]*//p')" "a port that is down"
echo up >"$debug/links/mb_1-sw_0/state"

test_case "a refused change of a queue pair stands in dmesg with its reason"
# Without an index of a GID the path has none.
start_server ibv_rc_pingpong
! run_client ibv_rc_pingpong || fail "a path without GID is taken"
kill "$server" 2>/dev/null || true
wait "$server" 2>/dev/null || true
grep -q "(ibv_rc_pingpong): the queue pair is not modified: .*GID.* (EINVAL)" "$debug/dmesg" || fail "$(tail -n 3 "$debug/dmesg")"

test_case "the stock programs run and leave nothing in the engine"
stock_programs
await nothing_left

test_case "a program's resources are counted, and freed when it ends"
timeout 60 "${verbs[@]}" ibv_asyncwatch -d mb_0 >/dev/null &
watcher=$!
holds_something() { [ "$(copy_threads)" -gt 0 ] && [ "$(open_files)" -gt 0 ]; }
await holds_something  # a client is seen by what is counted here
kill $watcher
wait $watcher || true
await nothing_left
unmounted

test_case "programs find the devices without enter, by /dev and the environment"
$root && unshare -m true 2>/dev/null || skip "no mount namespaces"
mounted
said=$(unshare -m bash -euo pipefail -c '. "$1/common.bash"; . "$1/verbs.bash"; trap - EXIT
  d=$dir/dev; mkdir -p $d; mount -t tmpfs none $d
  for node in null:1:3 zero:1:5 urandom:1:9; do IFS=: read -r name major minor <<<$node; mknod -m 666 $d/$name c $major $minor; done
  ln -s /proc/self/fd $d/fd; mkdir $d/infiniband $d/shm; cp -P $mnt/dev/infiniband/uverbs* $d/infiniband; mount --move $d /dev
  export SYSFS_PATH=$mnt RDMAV_DRIVERS=$ROCEFS_BUILD/lib/librocefs
  verbs=(env) logs=$dir
  ibv_devices | grep -c mb_
  pingpong 819200 ibv_rc_pingpong -g 1 -n 100' bash "$lib" 2>&1) || fail "without enter: $said"
expect 2 "$said" "without enter"
unmounted

test_case "an ordinary user runs programs in root's mount"
needs_other_users
mounted -o allow_other
expect "done" "$(as_user $use "$mnt" "$dir/logs" some_stock_programs 2>&1 | grep -v '^part left out')" "an ordinary user in root's mount"
await nothing_left
unmounted

test_case "an ordinary user runs programs in his own mount"
needs_other_users
needs_setuid_fusermount
expect "done" "$(as_mounter $use "$home/mnt" "$dir/logs" stock_programs 2>&1 | grep -v '^part left out')" "an ordinary user's own mount"

test_case "the root of a user namespace runs programs in his mount"
needs_other_users
expect "done" "$(as_mounter unshare -Urm $use "$home/mnt" "$dir/logs" some_stock_programs 2>&1 | grep -v '^part left out')" \
  "the root of a user namespace"
