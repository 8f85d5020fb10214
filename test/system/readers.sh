#!/bin/bash
# Each reader of a file sees all of it: by read(2), by sendfile(2) or splice(2), which the kernel would
# serve from its page cache, at once or on a descriptor that was kept, also by the worker that takes over.
. "$(dirname "$0")/lib/common.bash"
. "$lib/takeover.bash"
mounted
link=$debug/links/mb_0-sw_0
pcc=$ib/mb_0/pcc
echo "lost drop mb_0-sw_0 opcode=nak" >"$debug/inject/add"
echo "3600s kernel/debug/rocefs/links/mb_0-sw_0/loss=0.5" >"$debug/clock/at"
echo aimd >"$pcc/algo"
for i in {1..60}; do store "no number $i, and none that anybody would take for one" "$link/rate" >/dev/null; done

# On a terminal less(1) and its like end where fstat(2) says that the file does.
cat >"$dir/size.py" <<'PY'
import os, sys
descriptor = os.open(sys.argv[1], os.O_RDONLY)
size, text = os.fstat(descriptor).st_size, open(sys.argv[1], 'rb').read()
assert size == len(text) or not text and size == 4096, (size, len(text))
PY
is_stream() { case $1 in "$link/rate" | "$pcc/state") return 1 ;; esac }

copies() {  # FILE: every reader's copy is what read(2) says, and the size is that of all files
  ! is_stream "$1" || python3 "$dir/size.py" "$1" || fail "the size of $1 while it is open"
  expect 4096 "$(stat -c %s "$1")" "the size of $1"
  dd if="$1" of="$dir/wanted" bs=1M status=none
  [ -s "$dir/wanted" ] || [[ $1 == */npcc/flows ]] || fail "$1: nothing to read"
  for copy in "cat $1" "busybox cat $1" "cp $1 /dev/stdout" "tail -n +1 $1" "head -n 1000000 $1" \
    "python3 $dir/copy.py $1"; do
    $copy >"$dir/copy" || fail "$copy: $?"
    cmp "$dir/wanted" "$dir/copy" || fail "$copy"
    expect 4096 "$(stat -c %s "$1")" "the size of $1 after $copy"
  done
  rm -f "$dir/copied"
  cp "$1" "$dir/copied"
  cmp "$dir/wanted" "$dir/copied" || fail "cp $1"
  expect "$(tail -n 2 "$dir/wanted")" "$(tail -n 2 "$1")" "the last lines of $1"
  ! command -v curl >/dev/null || ! is_stream "$1" || [ ! -s "$dir/wanted" ] ||
    curl -s "file://$1" | cmp - "$dir/wanted" || fail "curl $1"
  expect "$(tail -c 20 "$dir/wanted")" "$(tail -c 20 "$1")" "the end of $1"
}
cat >"$dir/copy.py" <<'PY'
import os, shutil, sys, tempfile
with tempfile.TemporaryDirectory() as there:
    shutil.copyfile(sys.argv[1], there + "/copy")
    sys.stdout.write(open(there + "/copy").read())
PY
# A descriptor that is kept open sees later stores; so does a kept reader by splice.
cat >"$dir/kept.py" <<'PY'
import errno, os, sys
path, copies = sys.argv[1], 0
kept = os.open(path, os.O_RDONLY)
for value in sys.stdin:
    with open(path, "w") as file:
        file.write(value)
    for call in (lambda there: os.sendfile(there, kept, 0, 9999), lambda there: os.splice(kept, there, 9999, 0)):
        ours, theirs = os.pipe()
        try:
            call(theirs)
            said = os.read(ours, 9999).decode()
        except OSError as error:
            assert error.errno == errno.EINVAL, error
            said = os.pread(kept, 9999, 0).decode()
        assert said == value, (said, value)
        assert os.fstat(kept).st_size == 4096
        copies += 1
print(copies)
PY
all() {
  for file in "$debug/dmesg" "$debug/reference" "$debug/clock/at" "$debug/inject/list" "$pcc/status" "$pcc/trace" \
    "$debug/fabric/sw_0/npcc/flows" "$link/rate" "$pcc/state"; do
    copies "$file"
  done
  expect 6 "$(printf '%s\n' 25G 2500M 1G | python3 "$dir/kept.py" "$link/rate")" "kept descriptors"
}

test_case "every reader gets each file completely"
all

test_case "a descriptor kept open is served by the next worker"
exec 8<"$link/loss"
busybox cat <&8 >/dev/null
kill_worker
await took_over 1
echo 0.25 >"$link/loss"
expect 0.25 "$(busybox cat <"$link/loss")" "a descriptor of its own"
expect 0.25 "$(python3 -c 'import os; print(os.pread(8, 99, 0).decode(), end="")')" "a descriptor that was kept"

test_case "every reader gets each file completely after a takeover"
echo "lost drop mb_0-sw_0 opcode=nak" >"$debug/inject/add"  # faults are gone with a worker
all
