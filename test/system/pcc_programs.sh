#!/bin/bash
# Rights of programs that set windows: root and the owner of the mount, as for the files; others if the mount
# allows it. A program accepts memory only from an engine of root or of its own user.
. "$(dirname "$0")/lib/common.bash"
library=$(realpath "$(dirname "$ROCEFS")/../lib")
[ -e "$library/libmango.so" ] || skip "no libmango.so here"
needs_root "only root is more than one user"
include=$(realpath "$(dirname "$0")/../../pcc/api")
pcc=$ib/mb_0/pcc
chmod 755 "$dir" "$(dirname "$dir")"

# Takes the windows, prints the result, and gives them back.
cat >"$dir/program.c" <<'C'
#include <libmango.h>
#include <stdio.h>
static void algo(void* p) { (void)p; mango_pcc_window_update(9000); }
int main(void) {
  mango_pcc_h pcc;
  mango_status_e status = mango_pcc_create("mb_0", &pcc);
  if (!status) status = mango_pcc_ctrl_reg_algo(pcc, 0, algo, NULL, 0);
  if (!status) status = mango_pcc_ctrl_run(pcc, 1);
  puts(mango_status_str(status));
  return status != MANGO_STATUS_OK;
}
C
install -m 755 "$library/libmango.so" "$dir"
ln -s libmango.so "$dir/libmango.so.1"
"${CC:-cc}" -I"$include" "$dir/program.c" -o "$dir/program" -L"$dir" -lmango -Wl,-rpath,"$dir"
export ROCEFS_MOUNT=$mnt
owner=65533 stranger=65534

test_case "root and the owner may set windows, other users may not"
mounted -o allow_other,uid=$owner
expect "permission denied" "$(user=$stranger as_user "$dir/program")" "a stranger's program"
grep -q "mb_0: PCC: program (pid [0-9]*) is refused: user $stranger may not set windows" "$debug/dmesg" ||
  fail "dmesg: $(tail -n 3 "$debug/dmesg")"
expect success "$(user=$owner as_user "$dir/program")" "the owner's program"
await grep -q "stopped by program" "$debug/dmesg"
expect success "$("$dir/program")" "root's program"
unmounted

test_case "with allow_pcc other users may set windows"
mounted -o allow_other,allow_pcc
expect success "$(user=$stranger as_user "$dir/program")" "a stranger's program with allow_pcc"
unmounted

test_case "root's program does not trust another user's engine"
# An engine of somebody else's: what it would say and send is not even listened to.
at=$dir/theirs/kernel/debug/rocefs
mkdir -p "$at"
chown -R $stranger "$dir/theirs"
python3 - "$at/uapi" $stranger >"$dir/heard" <<'PY' &
import os, socket, sys
user = int(sys.argv[2])
os.setgroups([])
os.setresgid(user, user, user)
os.setresuid(user, user, user)
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(sys.argv[1])
listener.listen()
print("listens", flush=True)
for wanted in ("refused", "trusted"):
    caller, _ = listener.accept()
    if wanted == "trusted":
        caller.send(b"no greeting")
    print(wanted, flush=True)
    caller.close()
PY
theirs=$!
at_end eval 'kill $theirs 2>/dev/null'
await grep -q listens "$dir/heard"
export ROCEFS_MOUNT=$dir/theirs
expect "permission denied" "$("$dir/program" 2>"$dir/why")" "root's program on a stranger's engine"
expect "libmango: $dir/theirs is served by user $stranger, who is neither root nor you: refused" "$(cat "$dir/why")" "the reason"
expect "not supported" "$(ROCEFS_TRUST_UID=$stranger "$dir/program" 2>&1)" "one that trusts it"
wait "$theirs"
