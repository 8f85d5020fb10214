#!/bin/bash
# Large messages of a stock program whose regions are not shared are moved by a thread of that
# program, on either side.
. "$(dirname "$0")/lib/common.bash"
. "$lib/verbs.bash"
needs ibv_rc_pingpong
logs=$dir
mounted
verbs=("$ROCEFS" enter -m "$mnt" -- env ROCEFS_SHARE_REGIONS=0)
needs_enter

test_case "a thread of the program moves large messages"
start_server ibv_rc_pingpong -g 1 -s 1048576 -n 100000000
timeout -k 5 60 "${verbs[@]}" ibv_rc_pingpong -g 1 -s 1048576 -n 100000000 -d mb_1 -p $port 127.0.0.1 >"$logs/client" 2>&1 &
client=$!
stop() { kill $server $client 2>/dev/null || true; wait; }
at_end stop

# The thread moves memory by read(2) and write(2).
moved() {  # programs whose copier has moved ten messages each way
  local task count=0
  for task in $(grep -lx rocefs-copier /proc/[0-9]*/task/*/comm 2>/dev/null); do
    grep -qaz "^$port\$" "${task%/task/*}/cmdline" || continue
    awk '/^[rw]char/ && $2 > 10485760 {n++} END {exit n != 2}' "${task%/comm}/io" && count=$((count + 1))
  done
  [ $count -ge 2 ]
}
await moved
