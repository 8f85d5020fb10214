#!/bin/bash
# Every kind of knob behaves like an attribute of sysfs; the kernel's own sysfs is checked first, to verify
# the check itself.
. "$(dirname "$0")/lib/common.bash"
check=$(realpath "$(dirname "$0")/../fs")/sysfs_conformance.py
needs_root "root alone can make all of the check's calls"

# A bool and a number of the kernel that are harmless to change.
module=/sys/module/acpi/parameters
bool=$module/ec_no_wakeup

open_to_users
mounted -o allow_other
function=$mnt/devices/pci0000:2b/0000:2b:00.0
device=$function/infiniband/mb_0
link=$debug/links/mb_0-sw_0
bool_knob=$(find "$function/" -path "*/roce_np/enable/0")
[ -w "$bool_knob" ] || fail "no knob of two values"

conforms() {  # WHAT DIFFERS FILE VALUES ARGUMENT…
  echo "== $1"
  "$check" --imitation --differs "$2" --number "$3" --values "$4" --bool "$bool_knob" \
    --read-only "$device/ports/1/state" --write-only "$mnt/bus/pci/drivers/mango_core/unbind" \
    --link "$mnt/class/infiniband/mb_0" --largest 18446744073709551615 "${@:5}" || fail "$1"
}

test_case "the kernel's own sysfs conforms, as a control"
[ -w $bool ] && [ -w $module/ec_delay ] || skip "no acpi module with parameters to compare with"
interface=$(basename "$(realpath /sys/class/net/* | grep -v /virtual/ | head -n 1)")
"$check" --number $module/ec_delay --bool $bool --read-only $module/acpica_version \
  ${interface:+--link "/sys/class/net/$interface"} || fail "real sysfs"

test_case "numbers conform"
conforms "a decimal number" "" "$device/ports/1/hw_counters/lifespan" 1000,7 --decimal --wakes
conforms "a number" "" "$debug/clock/dilation" 1000,32

test_case "rates and sizes conform"
conforms "a rate" "" "$link/rate" 1234567,1000001 --decimal --wakes
conforms "a size" "" "$link/buffer" 1001,7 --decimal --wakes

test_case "a probability conforms"
# A probability may have a sign, a point or an exponent: the check's values with them are out of range. No number is too
# large for its type.
conforms "a probability" write.invalid.negative,write.invalid.fraction,write.invalid.exponent,write.range.type,write.range.64_bits,write.range.digits "$link/loss" 1,0 --decimal --wakes

test_case "a text conforms"
# Any line is a text.
lines=$(for id in blank leading_space trailing_space tab junk negative fraction exponent comma underscore \
  plus_plus plus_minus word; do printf 'write.invalid.%s,' $id; done)
lines+=write.range.type,write.range.64_bits,write.range.digits,write.plus,write.hexadecimal,write.zeros,
lines+=write.page,write.more_than_a_page,write.shell.refused
conforms "a text" "$lines" "$device/node_desc" 1000,7 --decimal --wakes

test_case "a duration conforms"
conforms "a duration" "" "$link/delay" 1001,7 --decimal --unit ns --wakes

test_case "a word is shown as it was stored, without the other words"
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
