#!/bin/bash
# A too low resource limit is named before the mount serves; a sufficient one is accepted.
. "$(dirname "$0")/lib/common.bash"
serves() { [ "$(timeout -s KILL 30 cat "$debug/seed")" = 7 ] && [ "$(store 0.5 "$debug/links/mb_0-sw_0/loss")" = ok ]; }
limited() {  # ULIMIT…
  local status=0
  (ulimit "$@" && exec timeout -s KILL 100 "$ROCEFS" -o seed=7 "$mnt") </dev/null 2>&1 | timeout 60 cat >"$dir/said" ||
    status=$?
  if [ $status -eq 0 ]; then
    serves || fail "ulimit $*: does not serve"
    unmounted
  else
    grep -q "^rocefs: .*" "$dir/said" || fail "ulimit $*: status $status, and nothing is said"
    ! mountpoint -q "$mnt" || fail "ulimit $*: something is left mounted: $(cat "$dir/said")"
    await gone
  fi
  outcome=$status
}
refused() {  # WORDS ULIMIT…
  limited "${@:2}"
  [ $outcome -eq 1 ] || fail "ulimit ${*:2}: status $outcome"
  grep -qF "$1" "$dir/said" || fail "ulimit ${*:2}: $(cat "$dir/said")"
}
tsan() { grep -qa __tsan_init "$ROCEFS"; }
loss=$(realpath "$(dirname "$0")/../../tools/scenarios/loss.ini")
simulated() {  # STATUS WORDS ULIMIT…
  local status=0
  (ulimit "${@:3}" && exec timeout -s KILL 100 "$ROCEFS" sim "$loss") </dev/null 2>&1 | timeout 60 cat >"$dir/said" || status=$?
  expect "$1" $status "sim, ulimit ${*:3}: $(cat "$dir/said")"
  grep -qF "$2" "$dir/said" || fail "sim, ulimit ${*:3}: $(cat "$dir/said")"
}

test_case "a too low limit of open files is named"
for n in 16 24 39; do refused "the limit of open files is $n (ulimit -Hn)" -n $n; done
for n in 40 65 100; do limited -n $n; expect 0 $outcome "-n $n: $(cat "$dir/said")"; done

test_case "a too low limit of file sizes is named"
! tsan || skip "under a limit of files no program with ThreadSanitizer begins"
for octets in 0 1 100; do refused "(ulimit -f)" -f $octets; done

test_case "a simulation checks the same limits"
for n in 12 39; do simulated 1 "the limit of open files is $n (ulimit -n)" -n $n; done
simulated 0 "1 of 1 flows done" -n 40
tsan || simulated 1 "File too large" -f 0

test_case "a too low limit of memory is named"
! grep -qa '__asan_init\|__tsan_init' "$ROCEFS" || skip "a sanitizer wants more than any of these"
for megabytes in 150 250; do refused "(ulimit -v)" -v $((megabytes * 1024)); done
for megabytes in 300 600 2000; do limited -v $((megabytes * 1024)); done
expect 0 $outcome "-v: $(cat "$dir/said")"
