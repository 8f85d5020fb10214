#!/bin/bash
# PCI functions: the configuration space beside the files that say the same, and lspci as it comes
# from the distribution.
. "$(dirname "$0")/lib/common.bash"
mounted
function=$(realpath "$ib/mb_0/device")
address=$(basename "$function")
octets() { od -An -v -tx1 -j "$1" -N "$2" "$function/config" | tr -d ' \n'; }  # OFFSET COUNT
little() { printf '0x%s\n' "$(octets "$1" "$2" | fold -w 2 | tac | tr -d '\n')"; }

test_case "the configuration space says what the files say"
expect "$(cat "$function/vendor")" "$(little 0 2)" "vendor"
expect "$(cat "$function/device")" "$(little 2 2)" "device"
expect "$(cat "$function/revision")" "$(little 8 1)" "revision"
expect "$(cat "$function/class")" "$(little 9 3)" "class"
expect "$(cat "$function/subsystem_vendor")" "$(little 44 2)" "subsystem vendor"
expect "$(cat "$function/subsystem_device")" "$(little 46 2)" "subsystem device"
expect "4096 4096" "$(stat -c %s "$function/config") $(wc -c <"$function/config")" "octets"
expect "Permission denied" "$(as_user bash -c "echo x >$function/config" 2>&1 | grep -o 'Permission denied' || true)" "a store"

test_case "ordinary users read the header alone, as from the kernel"
needs_root
unmounted
mounted -o allow_other
open_to_users
expect 64 "$(as_user cat "$function/config" | wc -c)" "octets for an ordinary user"
expect 4096 "$(wc -c <"$function/config")" "octets for root"
unmounted
mounted -o allow_other,uid="$user"
expect 4096 "$(as_user cat "$function/config" | wc -c)" "octets for the owner"
expect 64 "$(user=1 as_user cat "$function/config" | wc -c)" "octets for another user"
unmounted
mounted

test_case "lspci shows the functions, their link and their driver"
needs lspci
needs_enter
in_mount() { timeout 60 "$ROCEFS" enter -m "$mnt" -- "$@"; }
expect 2 "$(in_mount lspci -n -d "$(sed s/0x// "$function/vendor"):" | wc -l)" "functions"
in_mount lspci -vv -s "$address" >"$dir/lspci" || fail "$(cat "$dir/lspci")"
grep -q "LnkSta:.*Speed 32GT/s.*Width x16" "$dir/lspci" || fail "$(cat "$dir/lspci")"
expect "32.0 GT/s PCIe 16" "$(cat "$function"/current_link_{speed,width} | xargs)" "the link's files"
grep -q "Device Serial Number 02-00-4c-ff-fe-6d-62-01" "$dir/lspci" || fail "$(cat "$dir/lspci")"
grep -q "Kernel driver in use: mango_core" "$dir/lspci" || fail "$(cat "$dir/lspci")"
