# For tests in which workers die.
mounted_with() {  # FAULT [OPTION…]
  ROCEFS_FAULT=$1 "$ROCEFS" "${@:2}" "$mnt" >/dev/null
}
unmounted() {
  unmount
  await sh -c "! mountpoint -q '$mnt'"
  await ended  # or the next one's worker is mistaken for this one's
}
ended() { [ -z "$(daemon_pid)" ]; }
fired() { grep -q "fault point $1 fired" "$debug/dmesg"; }
quietly() { LC_ALL=C "$@" 2>&1 | sed 's/.*: //'; }
kill_worker() {
  local worker
  worker=$(worker_pid)
  kill -KILL "$worker"
  await replaced "$worker"
}
replaced() {
  local now
  now=$(worker_pid)
  [ -n "$now" ] && [ "$now" != "$1" ]
}
took_over() { [ "$(grep -c 'took over' "$debug/dmesg")" -ge "$1" ]; }
