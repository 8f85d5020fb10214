#!/bin/bash
# If io_uring is forbidden, rocefs does not mount, and reports what forbids it and what helps.
. "$(dirname "$0")/lib/common.bash"
needs python3
needs "${CC:-cc}"

refused() { python3 "$lib/seccomp.py" refuse "$@"; }
refused io_uring_setup=EPERM true || skip "no seccomp filters here"
profile="the seccomp profile in force must allow io_uring_setup, io_uring_enter and io_uring_register,\
 as rocefs's own does: tools/containers/seccomp.json, installed in share/rocefs"
disabled=$(cat /proc/sys/kernel/io_uring_disabled 2>/dev/null || echo 0)
[ "$disabled" = 0 ] || skip "io_uring is disabled on this machine"

test_case "a mount without io_uring reports what forbids it and what helps"
for call in setup enter register; do
  for code in EPERM ENOSYS EACCES; do
    status=0
    said=$(timeout 20 python3 "$lib/seccomp.py" refuse io_uring_$call=$code "$ROCEFS" "$mnt" 2>&1) || status=$?
    expect "1 rocefs: io_uring is forbidden here ($code); $profile" "$status $said" "io_uring_$call refused with $code"
    ! mountpoint -q "$mnt" || fail "mounted without io_uring"
  done
done

test_case "a simulation without io_uring reports it"
expect "1 rocefs: io_uring is forbidden here (EPERM); $profile" \
  "$(status=0; said=$(refused io_uring_setup=EPERM "$ROCEFS" sim "$(dirname "$0")/../../tools/scenarios/loss.ini" --out "$dir/out" 2>&1) || status=$?; echo "$status ${said/rocefs sim:/rocefs:}")" "sim"

test_case "a filter that allows io_uring does no harm"
refused reboot=EPERM "$ROCEFS" "$mnt" >/dev/null || fail "under a filter that allows io_uring"
expect "mb_0 mb_1" "$(ls "$ib" | xargs)" "under a filter that allows io_uring"
unmounted
