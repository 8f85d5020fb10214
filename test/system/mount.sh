#!/bin/bash
# Mounting and unmounting, the right way and the wrong ones.
. "$(dirname "$0")/lib/common.bash"


expect "1 rocefs: $dir/none: No such file or directory" "$(outcome_of "$ROCEFS" "$dir/none")" "no such place"
touch "$dir/file"
expect "1 rocefs: $dir/file: Not a directory" "$(outcome_of "$ROCEFS" "$dir/file")" "a file"
for option in max_read=4096 subtype=other; do
  expect "2 rocefs: $option: it is not to be chosen Try 'rocefs --help'." "$(outcome_of "$ROCEFS" -o $option "$mnt" | xargs -d '\n')" "-o $option"
done
for words in --help --version "sim --help" "enter --help"; do
  # shellcheck disable=SC2086
  expect "1 rocefs: stdout: No space left on device" "$(status=0; text=$("$ROCEFS" $words 2>&1 >/dev/full) || status=$?; echo "$status $text")" "$words on a full disk"
done
mounted
expect "1 rocefs: $mnt: busy: a rocefs is mounted there" "$(outcome_of "$ROCEFS" "$mnt")" "busy"

# Ends of a mount.
fusermount3 -u "$mnt"
await gone
mounted
kill -TERM "$(daemon_pid)"
await gone
mounted
umount "$mnt" 2>/dev/null || fusermount3 -u "$mnt"
await gone

# SIGTERM while a capture runs: every packet is in the file.
mounted
echo "$dir/cap.pcap" >"$debug/pcap"
echo "f write mb_0 mb_1 count=200" >"$debug/traffic/start"
await state_is f "done"
packets=$(cut -d' ' -f2 "$debug/pcap")
kill -TERM "$(daemon_pid)"
await gone
[ "$packets" -gt 0 ] || fail "nothing captured"
expect "$((200 * 65536))" "$("$(dirname "$0")/../../tools/pcap-payload" "$dir/cap.pcap" 2>/dev/null | wc -c)" \
  "payload in the capture"

# A daemon that died leaves a dead mount; the next one takes it away.
mounted
kill -KILL "$(daemon_pid)"
await sh -c "! ls '$mnt' >/dev/null 2>&1"
"$ROCEFS" "$mnt" >/dev/null 2>"$dir/stale"
grep -q "unmounting the dead mount" "$dir/stale" || fail "silent about the dead mount"
expect "mb_0 mb_1" "$(ls "$ib" | xargs)" "after a dead mount"
fusermount3 -u "$mnt"
await gone

# mount -t fuse.rocefs finds the program on the PATH and passes a source and kernel options.
if [ "$(id -u)" -eq 0 ] && [ -e /sbin/mount.fuse3 ] && [ ! -e /usr/bin/rocefs ]; then
  ln -s "$ROCEFS" /usr/bin/rocefs
  trap 'rm -f /usr/bin/rocefs; unmount' EXIT
  mount -t fuse.rocefs -o clock=virtual,dev,suid nic0 "$mnt" >/dev/null
  expect "nic0 fuse.rocefs" "$(findmnt -no SOURCE,FSTYPE "$mnt" | xargs)" "mount -t fuse.rocefs"
  expect "real [virtual]" "$(cat "$debug/clock/mode")" "options through mount(8)"
  umount "$mnt"
  await not_mounted
  rm -f /usr/bin/rocefs
  trap unmount EXIT
fi

# An ordinary user mounts, owns the files, and reaches nothing that is not his.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null && [ -u "$(command -v fusermount3)" ] &&
  [ "$(stat -c %a /dev/fuse)" = 666 ] && [ -r /etc/mtab ]; then
  open_to_users
  chown 65534:65534 "$mnt"
  nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
  nobody "$ROCEFS" "$mnt" >/dev/null
  expect 65534 "$(nobody stat -c %u "$mnt/class")" "owner"
  nobody sh -c 'echo 0.5 > "$1"' sh "$debug/links/mb_0-sw_0/loss"
  nobody fusermount3 -u "$mnt"
  await gone
  chown 0:0 "$mnt"
else
  echo "part left out: no setuid fusermount3, no /dev/fuse for users, or no /etc/mtab"
fi

# Root's daemon opens what people name as they would.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
  "$ROCEFS" -o allow_other "$mnt" >/dev/null
  chmod 666 "$debug/traffic/start" "$debug/pcap"
  echo secret >"$dir/secret"
  chmod 600 "$dir/secret"
  open_to_users
  as_nobody() {
    LC_ALL=C setpriv --reuid=65534 --regid=65534 --clear-groups bash -c 'echo "$1" > "$2"' sh "$1" "$2" 2>&1 |
      sed 's/.*: //'
  }
  expect "Permission denied" "$(as_nobody "f write mb_0 mb_1 file=$dir/secret" "$debug/traffic/start")" "file="
  expect "Permission denied" "$(as_nobody "$dir/cap" "$debug/pcap")" "pcap"
  [ ! -e "$dir/cap" ] || fail "pcap made a file where the writer may not"
  # Relative to the writer's directory.
  (cd "$dir" && echo "g write mb_0 mb_1 file=secret out=copied" >"$debug/traffic/start")
  await state_is g "done"
  cmp "$dir/secret" "$dir/copied"
  expect root "$(stat -c %U "$dir/copied")" "owner of out="
fi
