# A mount's life in a user namespace: rootless.bash, with ROCEFS and ROCEFS_TEST_DIR as a system test.
mkdir -p "$ROCEFS_TEST_DIR/mnt" "$ROCEFS_TEST_DIR/second"
. "$(dirname "$0")/common.bash"
bin=$(dirname "$ROCEFS")
second=$dir/second
expect 0 "$(id -u)" "who one is in it"

start=${EPOCHREALTIME/./}  # microseconds
mkdir "$dir/run"
XDG_RUNTIME_DIR=$dir/run mounted
took=$(((${EPOCHREALTIME/./} - start) / 1000))
echo "mounted in $took ms"
expect "mb_0 mb_1" "$(ls "$ib" | xargs)" "devices"
expect 0 "$(stat -c %u "$mnt/class")" "owner"
# The /run that is seen is not this root's.
plugins=$(cat "$ib/mb_0/pcc/plugin_dir") || fail "nowhere for plugins"
[ "${plugins#"$dir/run/rocefs/"}" != "$plugins" ] || fail "plugins in $plugins"
touch "$plugins/x.so" || fail "not to be written: $plugins"
rm "$plugins/x.so"
echo 0.25 >"$debug/links/mb_0-sw_0/loss"

# A worker dies; then all of it, and the next one takes the dead mount away.
first=$(worker_pid)
kill -KILL "$first"
expect 0.25 "$(cat "$debug/links/mb_0-sw_0/loss")" "after a takeover"
kill_all
"$ROCEFS" "$mnt" >/dev/null 2>"$dir/said" || fail "$(cat "$dir/said")"
grep -q "unmounting the dead mount" "$dir/said" || fail "silent about a dead mount"
expect 0 "$(cat "$debug/links/mb_0-sw_0/loss")" "of the next life"

# Programs, and a second mount beside the first.
expect "mb_0 mb_1" "$("$ROCEFS" enter -m "$mnt" sh -c 'echo $(ls /sys/class/infiniband)')" "enter"
"$ROCEFS" -o clock=virtual "$second" >/dev/null
expect "real [virtual]" "$(cat "$second/kernel/debug/rocefs/clock/mode")" "the second mount"
if command -v ibv_rc_pingpong >/dev/null && [ -e "$bin/lib/librocefs-rdmav34.so" ]; then
  drivers=$bin/lib/librocefs
  pingpong() { RDMAV_DRIVERS=$drivers "$ROCEFS" enter -m "$mnt" -- ibv_rc_pingpong -g 1 -n 50 -p 18474 "$@"; }
  pingpong -d mb_0 >"$dir/server" 2>&1 &
  server=$!
  meets() { pingpong -d mb_1 localhost >"$dir/client" 2>&1 || ! kill -0 $server; }
  await meets
  wait $server || fail "the server: $(cat "$dir/server")"
  grep -q "^50 iters" "$dir/client" || fail "the client: $(cat "$dir/client")"
else
  echo "part left out: no ibv_rc_pingpong, or no provider here"
fi

umount "$second"
kill -TERM "$(daemon_pid)"
await gone
