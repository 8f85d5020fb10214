#!/bin/bash
# A plugin runs as the owner of the mount (-o uid= on root's mount): no capabilities, no file of root's, no
# terminal. Files that it leaves behind stop no other mount.
. "$(dirname "$0")/lib/common.bash"
pccd=$(dirname "$ROCEFS")/mango-pccd
[ -x "$pccd" ] || skip "no mango-pccd here"
needs_root "only root mounts for others"
include=$(realpath "$(dirname "$0")/../../pcc/api")
pcc=$ib/mb_0/pcc
owner=65534
as_owner() { user=$owner as_user "$@"; }
chmod 755 "$dir" "$(dirname "$dir")"
said=$dir/said
mkdir -m 777 "$said"
echo "root's alone" >"$dir/secret"
chmod 600 "$dir/secret"

cat >"$dir/spy.cc" <<CC
#include <fcntl.h>
#include <libmango.h>
#include <unistd.h>

#include <fstream>
static void algo(void*) {}
// What its process is, as it is loaded: before any order of the daemon can hold it.
__attribute__((constructor)) static void spy() {
  std::ofstream(SAID "/status") << std::ifstream("/proc/self/status").rdbuf();
  std::ofstream environment(SAID "/environ");
  for (char** each = environ; *each; ++each) environment << *each << "\n";
  std::ofstream out(SAID "/found");
  out << "secret " << (open(SECRET, O_RDONLY) >= 0) << "\nroot " << (setuid(0) == 0) << "\ntty "
      << (open("/dev/tty", O_RDWR) >= 0) << "\n";
  for (int fd = 1; fd < 1024; ++fd) {
    char path[64], what[256] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (readlink(path, what, sizeof what - 1) > 0 && what[0] == '/') out << "open " << what << "\n";
  }
}
const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "spy", .desc = "a test", .init_params = nullptr, .destroy_params = nullptr, .algo_fn = algo};
CC
"${CXX:-c++}" -std=c++20 -O1 -shared -fPIC -I"$include" -DSAID="\"$said\"" -DSECRET="\"$dir/secret\"" \
  -o "$dir/spy.so" "$dir/spy.cc"
chmod 644 "$dir/spy.so"
field() { awk -v name="$1:" '$1 == name { $1 = ""; print substr($0, 2) }' "$said/status"; }

run_spy() {  # UID GID GROUPS
  expect ok "$(store 1 "$pcc/load")" "load"
  expect "$1 $1 $1 $1" "$(field Uid)" "who runs plugins"
  expect "$2 $2 $2 $2" "$(field Gid)" "its group"
  expect "" "$(field Groups)" "its other groups"
  for set in CapInh CapPrm CapEff CapBnd CapAmb; do
    expect 0000000000000000 "$(field $set)" "$set"
  done
  expect 1 "$(field NoNewPrivs)" "no_new_privs"
}

test_case "the owner's plugin runs as the owner, without root's files and rights"
SECRET_OF_ROOTS=1 mounted -o uid=$owner,allow_other
plugins=$(cat "$pcc/plugin_dir")
as_owner cp "$dir/spy.so" "$plugins"
LC_ALL=C as_owner bash -c 'echo 1 >"$1"' sh "$pcc/load" || fail "load by the owner"
run_spy $owner "$(id -g $owner 2>/dev/null || echo 65534)"
printf '%s\n' "secret 0" "root 0" "tty 0" | cmp -s - <(grep -v "^open " "$said/found") || fail "found: $(cat "$said/found")"
grep "^open " "$said/found" | grep -vx "open /dev/null" | grep -Ev "^open (/memfd:spy.so|$said/)" && fail "open files of the daemon"
! grep -q "^SECRET_OF_ROOTS=" "$said/environ" || fail "the environment of the daemon"
grep -q "^PATH=" "$said/environ" || fail "no environment"

test_case "the owner learns nothing of root's directories by plugin_dir"
mkdir -m 700 "$dir/closed"
mkdir "$dir/closed/there"
touch "$dir/closed/file"
mkdir -m 755 "$dir/open"
owner_stores() { LC_ALL=C as_owner bash -c '{ echo "$1" >"$2"; } 2>&1 || true' sh "$1" "$pcc/plugin_dir" | sed 's/.*: //'; }
for name in there file none; do
  expect "Permission denied" "$(owner_stores "$dir/closed/$name")" "closed/$name"
done
expect "No such file or directory" "$(owner_stores "$dir/none")" "a directory that is not there"
expect "" "$(owner_stores "$dir/open")$(owner_stores "$plugins")" "directories open to all"

test_case "its owner may kill it, which ends nothing else"
expect ok "$(store spy "$pcc/algo")" "apply"
expect ok "$(store start "$pcc/state")" "start"
card=$(pgrep -P "$(worker_pid)" -f "^[^ ]*mango-pccd mb_0")
as_owner kill -9 "$card"
await grep -qx inactive "$pcc/state"
expect ok "$(store 1 "$pcc/load")" "load by another process"
unmounted

test_case "root does not load another owner's plugins, and root's plugin runs as root"
mounted
[ "$(cat "$pcc/plugin_dir")" != "$plugins" ] || fail "root loads what another owner has left"
rm -f "$said"/*
cp "$dir/spy.so" "$(cat "$pcc/plugin_dir")"
run_spy 0 0
rm -f "$(cat "$pcc/plugin_dir")/spy.so" "$plugins/spy.so"
unmounted
rmdir "$plugins" && rmdir "${plugins%/*}"
