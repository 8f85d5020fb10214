#!/bin/bash
# A stock program's large messages are moved by a thread of its own, on either side.
. "$(dirname "$0")/lib/common.bash"
. "$(dirname "$0")/lib/verbs.bash"
command -v ibv_rc_pingpong >/dev/null || { echo "no ibv_rc_pingpong (ibverbs-utils)"; exit 77; }
logs=$dir
mounted
verbs=("$ROCEFS" enter -m "$mnt" --)
if ! "${verbs[@]}" true 2>"$dir/why"; then echo "nobody can enter: $(cat "$dir/why")"; exit 77; fi

start_server ibv_rc_pingpong -g 1 -s 1048576 -n 100000000
timeout -k 5 60 "${verbs[@]}" ibv_rc_pingpong -g 1 -s 1048576 -n 100000000 -d mb_1 -p $port 127.0.0.1 >"$logs/client" 2>&1 &
trap 'kill $server $! 2>/dev/null || true; wait; unmount' EXIT

# read(2) and write(2) are what it moves memory by.
moved() {  # programs whose copier has moved ten messages each way
  local task count=0
  for task in $(grep -lx rocefs-copier /proc/[0-9]*/task/*/comm 2>/dev/null); do
    grep -qaz "^$port\$" "${task%/task/*}/cmdline" || continue
    awk '/^[rw]char/ && $2 > 10485760 {n++} END {exit n != 2}' "${task%/comm}/io" && count=$((count + 1))
  done
  [ $count -ge 2 ]
}
await moved
