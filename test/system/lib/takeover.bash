# For tests in which workers die.
mounted_with() {  # FAULT [OPTION…]
  ROCEFS_FAULT=$1 "$ROCEFS" "${@:2}" "$mnt" >/dev/null
}
unmounted() {
  local processes
  processes=$(pgrep -f "^$ROCEFS .*$mnt\$" -r S,R,D) || true
  unmount
  await not_mounted
  await all_ended $processes  # or the next one's worker is mistaken for this one's
}
not_mounted() { ! mountpoint -q "$mnt"; }
fired() { grep -q "fault point $1 fired" "$debug/dmesg"; }
quietly() { LC_ALL=C "$@" 2>&1 | sed 's/.*: //'; }
# One that has just been made has yet to take the name.
has_worker() { pgrep -P "$1" -r S,R,D -x rocefs-worker >/dev/null; }
kill_worker() {
  local supervisor worker
  supervisor=$(daemon_pid)
  await has_worker "$supervisor"
  worker=$(pgrep -P "$supervisor" -r S,R,D -x rocefs-worker | head -n 1)
  kill -KILL "$worker"
  await replaced "$supervisor" "$worker"
}
replaced() {  # SUPERVISOR WORKER
  local child
  for child in $(<"/proc/$1/task/$1/children"); do [ "$child" = "$2" ] || return 0; done
  return 1
}
took_over() { [ "$(grep -c 'took over' "$debug/dmesg")" -ge "$1" ]; }
