#!/bin/bash
# Where io_uring is forbidden, rocefs works with polls and says so; if io_uring is asked for, it reports what
# forbids it and what helps.
. "$(dirname "$0")/lib/common.bash"
needs python3
needs "${CC:-cc}"
unset ROCEFS_LOOP

refused() { python3 "$lib/seccomp.py" refuse "$@"; }
refused io_uring_setup=EPERM true || skip "no seccomp filters here"
profile="the seccomp profile in force must allow io_uring_setup, io_uring_enter and io_uring_register,\
 as rocefs's own does: tools/containers/seccomp.json, installed in share/rocefs"
disabled=$(cat /proc/sys/kernel/io_uring_disabled 2>/dev/null || echo 0)
[ "$disabled" = 0 ] || skip "io_uring is disabled on this machine"
loss=$(dirname "$0")/../../tools/scenarios/loss.ini
told() { grep -F "packet core: poll loop: $1" "$debug/dmesg" >/dev/null || fail "dmesg does not say '$1': $(<"$debug/dmesg")"; }
flow_crosses() {  # NAME
  echo "$1 write mb_0 mb_1 count=100" >"$debug/traffic/start"
  await state_is "$1" "done"
}

test_case "a mount without io_uring works with polls, and says what forbids it"
for call in setup enter register; do
  for code in EPERM ENOSYS EACCES; do
    refused io_uring_$call=$code "$ROCEFS" "$mnt" >/dev/null || fail "io_uring_$call refused with $code"
    expect poll "$(<"$debug/loop")" "loop, io_uring_$call refused with $code"
    told "io_uring is forbidden here ($code); $profile"
    flow_crosses f
    unmounted
  done
done

test_case "io_uring that is asked for and forbidden is reported, with what helps"
for call in setup enter register; do
  for code in EPERM ENOSYS EACCES; do
    expect "1 rocefs: io_uring is forbidden here ($code); $profile" \
      "$(ROCEFS_LOOP=io_uring outcome_of timeout 20 python3 "$lib/seccomp.py" refuse io_uring_$call=$code "$ROCEFS" "$mnt")" \
      "io_uring_$call refused with $code"
    ! mountpoint -q "$mnt" || fail "mounted without io_uring"
  done
done
said=$(ROCEFS_LOOP=io_uring outcome_of refused io_uring_setup=EPERM "$ROCEFS" sim "$loss" --out "$dir/out")
expect "1 rocefs: io_uring is forbidden here (EPERM); $profile" "${said/rocefs sim:/rocefs:}" "sim"

test_case "a simulation does not care"
for loop in io_uring poll; do
  ROCEFS_LOOP=$loop "$ROCEFS" sim "$loss" --out "$dir/$loop" >/dev/null 2>&1 || fail "sim, $loop"
done
refused io_uring_setup=EPERM "$ROCEFS" sim "$loss" --out "$dir/refused" >/dev/null 2>&1 || fail "sim without io_uring"
diff -r -x timing.csv "$dir/io_uring" "$dir/poll" || fail "results differ"
diff -r -x timing.csv "$dir/io_uring" "$dir/refused" || fail "results differ"

test_case "ROCEFS_LOOP takes three words, and no others"
for loop in spin POLL; do
  expect "2 rocefs: ROCEFS_LOOP is '$loop': it takes poll, io_uring or auto" \
    "$(ROCEFS_LOOP=$loop outcome_of "$ROCEFS" "$mnt")" "ROCEFS_LOOP=$loop"
  said=$(ROCEFS_LOOP=$loop outcome_of "$ROCEFS" sim "$loss")
  expect "2 rocefs: ROCEFS_LOOP is '$loop': it takes poll, io_uring or auto" "${said/rocefs sim:/rocefs:}" "sim, ROCEFS_LOOP=$loop"
done
ROCEFS_LOOP=auto mounted
expect io_uring "$(<"$debug/loop")" "loop, of auto"
! grep -q 'packet core' "$debug/dmesg" || fail "dmesg says: $(<"$debug/dmesg")"

test_case "a worker that takes over has the loop that the first one was told to have"
ROCEFS_LOOP=poll mounted
told "ROCEFS_LOOP asks for it"
kill_worker
expect poll "$(<"$debug/loop")" "loop, after a takeover"
flow_crosses f
unmounted
refused io_uring_setup=EPERM "$ROCEFS" "$mnt" >/dev/null
kill_worker
expect poll "$(<"$debug/loop")" "loop, after a takeover without io_uring"
flow_crosses f

test_case "a filter that allows io_uring does no harm"
! mountpoint -q "$mnt" || unmounted
refused reboot=EPERM "$ROCEFS" "$mnt" >/dev/null || fail "under a filter that allows io_uring"
expect "mb_0 mb_1 io_uring" "$(ls "$ib" | xargs) $(<"$debug/loop")" "under a filter that allows io_uring"
unmounted
