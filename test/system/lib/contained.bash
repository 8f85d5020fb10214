# Everyday life in a container, under its filter: contained.bash MOUNTPOINT DIR. Ends with the first
# thing that does not go.
set -euo pipefail
mnt=$1 dir=$2
debug=$mnt/kernel/debug/rocefs
bin=$(dirname "$ROCEFS")
export PATH=$bin:$PATH:/usr/sbin ROCEFS_MOUNT=$mnt
is() { until grep -q "$1" "$2"; do read -rt 0.05 <> <(:) || true; done; }
# True if no filter has killed the command, whatever its status.
lives() { local status=0; "$@" >/dev/null 2>&1 || status=$?; [ $status -ne 159 ] && [ $status -ne 31 ]; }
has() { command -v "$1" >/dev/null; }

# Files, flows with files, captures, PCC in its own process.
find "$mnt" -type f -perm -444 -path '*/mb_0/*' ! -path '*/gid_attrs/*' -exec cat {} + >/dev/null
echo "$dir/capture" >"$debug/pcap"
cp "$ROCEFS" "$dir/original"
echo "f write mb_0 mb_1 file=$dir/original out=$dir/copy" >"$debug/traffic/start"
if [ -x "$bin/mango-pccd" ]; then
  echo aimd >"$mnt/class/infiniband/mb_0/pcc/algo"
  echo start >"$mnt/class/infiniband/mb_0/pcc/state"
fi
is "done" "$debug/traffic/f/state"
echo off >"$debug/pcap"
cmp "$dir/original" "$dir/copy"
[ ! -x "$bin/mango-ctl" ] || mango-ctl rdma pcc status >/dev/null

# Programs of the field, in a /sys of their own.
! has ibstat || [ "$(rocefs enter -- ibstat -l | xargs)" = "mb_0 mb_1" ]
# TOOL [ARGUMENT…]: between the two NICs; the client comes as soon as the server listens.
crosses() {
  has "$1" && [ -e "$bin/../lib/librocefs-rdmav34.so" ] || return 0
  rocefs enter -- "$@" -d mb_0 -p 18472 >"$dir/server" 2>&1 &
  local server=$! port
  printf -v port ':%04X' 18472
  until awk -v at="$port" '$4 == "0A" && substr($2, length($2) - 4) == at {found = 1} END {exit !found}' /proc/net/tcp{,6}; do
    kill -0 $server
    read -rt 0.05 <> <(:) || true
  done
  rocefs enter -- "$@" -d mb_1 -p 18472 localhost >"$dir/client" 2>&1
  wait $server
}
crosses ibv_rc_pingpong -g 1 -n 20
crosses ib_write_bw -x 1 -n 20
! has perfquery || lives rocefs enter -- timeout 5 perfquery -C mb_0

# A userland.
! has busybox || busybox ls / >/dev/null
python3 -c 'import subprocess, threading, socket, tempfile, asyncio
subprocess.run(["true"], check=True)
asyncio.run(asyncio.sleep(0.01))
socket.create_server(("127.0.0.1", 0)).close()
tempfile.TemporaryFile().write(b"x")'
perl -e 'system("true") == 0 or die; print -e "/" ? "" : "?"'
tar -C "$dir" -cf - copy original | tar -tf - >/dev/null
sort -S 1M </etc/passwd | awk 1 | sed p | xargs -n 1 -P 2 true
lives ip link
lives getent hosts localhost
echo 0.25 >"$debug/links/mb_0-sw_0/loss"
