#!/bin/bash
# Workers are killed while directories are listed and change: the reader holds the directory's lock and
# waits for an answer, the notifier of the change waits for the lock. Each worker has a successor at
# once. ROCEFS_TAKEOVERS: how many are killed.
. "$(dirname "$0")/lib/common.bash"
. "$lib/takeover.bash"

takeovers=${ROCEFS_TAKEOVERS:-15}
crowd=()
# A mount that hangs keeps its users in the kernel for ever; aborting its connection releases them.
cut_off() {
  kill -KILL "${crowd[@]}" 2>/dev/null || true
  ! mountpoint -q "$mnt" || umount -f "$mnt" 2>/dev/null || true
}
at_end cut_off
must_answer() {
  local end=$((SECONDS + 60)) pid=
  timeout -s KILL 60 cat "$debug/seed" >"$dir/answer" &
  pid=$!
  while [ -e "/proc/$pid" ] && ! all_ended $pid; do
    [ $SECONDS -lt $end ] || fail "nothing answers after $1 kills"
    read -rt 0.01 -u "$silence" || true
  done
  wait $pid || fail "status $? of cat after $1 kills"
}

mounted -o seed=7
# Programs that continue after any error.
lister() { set +e; while :; do ls -l "$debug/inject" "$debug/traffic" "$debug/traffic"/*; done >/dev/null 2>&1; }
injector() {  # NAME
  set +e
  while :; do echo "$1 drop mb_0-sw_0 psn=1" >"$debug/inject/add"; echo 1 >"$debug/inject/$1/remove"; done 2>/dev/null
}
starter() {  # NAME
  set +e
  while :; do echo "$1 write mb_0 mb_1 count=1" >"$debug/traffic/start"; echo 1 >"$debug/traffic/$1/stop"; done 2>/dev/null
}
for n in 1 2 3; do lister & crowd+=($!); done
for n in 1 2; do injector i$n & crowd+=($!); starter f$n & crowd+=($!); done

test_case "a mount answers while its directories change and workers are killed"
longest=0
for ((i = 1; i <= takeovers; ++i)); do
  supervisor=$(daemon_pid) worker=$(worker_pid)
  [ -n "$worker" ] || fail "no worker before kill $i"
  # One worker in six lives for more than a second: a mount whose workers all die at once is given up.
  life=0.0$((RANDOM % 10))
  [ $((i % 6)) -ne 0 ] || life=1.1
  read -rt $life -u "$silence" || true
  start=${EPOCHREALTIME/./}
  kill -KILL "$worker"
  must_answer $i
  pause=$(((${EPOCHREALTIME/./} - start) / 1000))
  [ $pause -le $longest ] || longest=$pause
  await replaced "$supervisor" "$worker"
done
kill -KILL "${crowd[@]}"
crowd=()
expect 7 "$(cat "$dir/answer")" "the last answer"
took=$(sed -n 's/.*took over \([0-9]*\).*/\1/p' "$debug/dmesg" | sort -n | tail -n 1)
echo "REPORT longest takeover amid listings: $took ms; until a cat was answered: $longest ms; of $takeovers"
[ "$took" -lt 10000 ] || fail "a takeover of $took ms"
unmounted
