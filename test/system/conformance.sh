#!/bin/bash
# Every kind of knob behaves as an attribute of sysfs does, by the black-box check; real sysfs goes
# first, so that the check itself is checked.
. "$(dirname "$0")/lib/common.bash"
check=${ROCEFS_SHARED:-../shared}/checks/sysfs_conformance.py
[ -r "$check" ] || { echo "no $check"; exit 77; }
[ "$(id -u)" -eq 0 ] || { echo "root alone can make all of the check's calls"; exit 77; }
command -v python3 >/dev/null || { echo "no python3"; exit 77; }

# A bool and a number of the kernel's own that mean little on any machine.
module=/sys/module/acpi/parameters
bool=$module/ec_no_wakeup
[ -w $bool ] && [ -w $module/ec_delay ] || { echo "no acpi module with parameters to compare with"; exit 77; }
interface=$(basename "$(realpath /sys/class/net/* | grep -v /virtual/ | head -n 1)")
python3 "$check" -q --uint $module/ec_delay --bool $bool --ro $module/acpica_version \
  ${interface:+--link "/sys/class/net/$interface"} || fail "the control: real sysfs"

chmod 711 "$dir" "$(dirname "$dir")"
mounted -o allow_other
function=$mnt/devices/pci0000:2b/0000:2b:00.0
device=$function/infiniband/mb_0
link=$debug/links/mb_0-sw_0

# What FUSE cannot give.
known=statfs.magic,read.mmap,xattr.trusted
conforms() {  # WHAT SCRIPT KNOWN FILE V1,V2 ARGUMENT…
  echo "== $1"
  python3 "$2" -q --known "$known,$3" --uint "$4" --values "$5" --bool $bool \
    --ro "$device/ports/1/state" --wo "$mnt/bus/pci/drivers/mango_core/unbind" \
    --link "$mnt/class/infiniband/mb_0" --umax 18446744073709551615 "${@:6}" || fail "$1"
}
with_notify() {  # as conforms; the values also wake who polls
  conforms "$@" --notify "$4" --notify-cmd "echo ${5#*,} > $4; echo ${5%,*} > $4; echo ${5#*,} > $4"
}

with_notify "a decimal number" "$check" "" "$device/ports/1/hw_counters/lifespan" 1000,7 --base 10
conforms "a number" "$check" "" "$debug/clock/dilation" 1000,32

# Their own syntax is decimal: the check pads with octal digits, which are right below 8.
with_notify "a rate" "$check" write.page,write.overpage "$link/rate" 1234567,1000001 --base 10
with_notify "a size" "$check" "" "$link/buffer" 1001,7 --base 10
# A probability may be written with a sign, a point or an exponent: these are out of its range.
with_notify "a probability" "$check" write.einval.negative,write.einval.float,write.einval.exp \
  "$link/loss" 1,0 --base 10
# Any line is a text.
lines=$(for id in blank lead_space trail_space junk negative float exp comma underscore plusplus \
  plusminus word; do printf 'write.einval.%s,' $id; done)
with_notify "a text" "$check" \
  "${lines}write.erange.u32,write.erange.u64,write.erange.huge,write.plus,write.hex,write.zeros,write.page,write.overpage,write.bash_err" \
  "$device/node_desc" 1000,7 --base 10

# A duration is shown with its unit: the check is told how.
sed -e 's/^def u(v): .*/def u(v): return b"%dns\\n" % v/' -e 's/str(V\([12]\))/u(V\1).decode().strip()/g' \
  -e 's/s = b"%d\\n" % V2/s = u(V2)/' "$check" >"$dir/durations.py"
with_notify "a duration" "$dir/durations.py" "" "$link/delay" 1001,7 --base 10

# A word is shown as it is stored, without the others.
echo "== a word"
for word in down up; do
  expect ok "$(store $word "$link/state")" "word $word"
  expect $word "$(cat "$link/state")" "word $word"
done
printf down >"$link/state"
expect down "$(cat "$link/state")" "without a newline"
for text in DOWN downx dow " down" "down " "[down]" "down
" 1; do
  expect "Invalid argument" "$(store "$text" "$link/state")" "word '$text'"
  expect down "$(cat "$link/state")" "after '$text'"
done
