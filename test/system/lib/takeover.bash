# Fixtures for tests in which workers die.
mounted_with() {  # FAULT [OPTION…]
  ROCEFS_FAULT=$1 mounted "${@:2}"
}
fired() { grep -q "fault point $1 fired" "$debug/dmesg"; }
took_over() { [ "$(grep -c 'took over' "$debug/dmesg")" -ge "$1" ]; }  # TIMES
