# installed.bash PREFIX MOUNTPOINT SOURCE…: what a user does with an installed rocefs, in a mount namespace in which
# the directories SOURCE are empty: the checkout and its build. Says what fails.
set -euo pipefail
prefix=$1 mnt=$2
shift 2
cd /
for source; do [ ! -e "$source" ] || mount -t tmpfs -o mode=755 none "$source"; done
scratch=$mnt.scratch
mkdir -p "$mnt" "$scratch"
failed="the mount"
export PATH=$prefix/bin:$PATH HOME=$scratch ROCEFS_MOUNT=$mnt
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
trap 'status=$?; fusermount3 -u "$mnt" 2>/dev/null || umount -l "$mnt" 2>/dev/null || true
  [ $status -eq 0 ] || echo "installed.bash: $failed"' EXIT
trap 'failed="line $LINENO: $BASH_COMMAND"' ERR
same() { [ "$1" = "$2" ] || { echo "$3: wanted '$1', got '$2'"; exit 1; }; }

for program in rocefs mango-ctl mango-pccd; do same "$prefix/bin/$program" "$(type -P "$program")" "program"; done
rocefs "$mnt" >/dev/null
debug=$mnt/kernel/debug/rocefs
same "mb_0 mb_1" "$(ls "$mnt/class/infiniband" | xargs)" "devices"
same "mb_0 mb_1" "$(rocefs enter -- ls /sys/class/infiniband | xargs)" "devices inside"
echo "f write mb_0 mb_1 count=10" >"$debug/traffic/start"
until grep -q done "$debug/traffic/f/state"; do :; done

# A verbs program finds the provider.
if command -v ibv_devinfo >/dev/null; then
  rocefs enter -- ibv_devinfo -d mb_0 >"$scratch/devinfo"
  grep -q PORT_ACTIVE "$scratch/devinfo"
fi

# An algorithm is built with the installed header, and runs in the installed mango-pccd.
cp "$prefix/share/doc/rocefs/examples/plugins/gentle.cc" "$scratch"
mkdir "$scratch/plugins"
echo "$scratch/plugins" >"$mnt/class/infiniband/mb_0/pcc/plugin_dir"
echo "$prefix/lib/rocefs/examples" >"$mnt/class/infiniband/mb_1/pcc/plugin_dir"
mango-ctl rdma pcc algo cross-build "$scratch/gentle.cc" mb_0 >"$scratch/said"
mango-ctl rdma pcc algo load all >"$scratch/said"
for algorithm in "mb_0 gentle" "mb_1 hpcc"; do
  mango-ctl rdma pcc apply $algorithm >"$scratch/said"
  mango-ctl rdma pcc start ${algorithm% *} >"$scratch/said"
  mango-ctl rdma pcc status ${algorithm% *} >"$scratch/said"
  grep -q "${algorithm#* }" "$scratch/said"
done

# What `rdma pcc new` makes is built by make, and tested.
(cd "$scratch" && mango-ctl rdma pcc new fresh >said && cd fresh && make -s >../said 2>&1) || { cat "$scratch/said"; exit 1; }

# A program with libmango is built by pkg-config, whose words a shell reads.
cat >"$scratch/program.c" <<'C'
#include <libmango.h>
#include <stdio.h>
int main(void) {
  puts(mango_status_str(MANGO_STATUS_OK));
  return 0;
}
C
eval "cc -o '$scratch/program' '$scratch/program.c' $(pkg-config --cflags --libs mango)"
"$scratch/program" >/dev/null
same "$(rocefs --version | sed -n '1s/rocefs //p')" "$(pkg-config --modversion mango)" "version of mango.pc"

# Examples need nothing of the checkout.
examples=$prefix/share/doc/rocefs/examples
rocefs sim --out "$scratch/incast" "$examples/scenarios/incast.ini" >"$scratch/said" 2>&1
grep -qF "plugin_dir = $prefix/lib/rocefs/examples" "$examples/scenarios/timely.ini"
if command -v man >/dev/null; then
  for page in "$prefix"/share/man/man?/*; do
    man -l "$page" >"$scratch/page" 2>/dev/null
    grep -q "^rocefs $(pkg-config --modversion mango) " "$scratch/page"
  done
fi
fusermount3 -u "$mnt" 2>/dev/null || umount "$mnt"
rm -rf "$scratch"
echo works
