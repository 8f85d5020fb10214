#!/bin/bash
# mango-ctl: output as in the vendor's reference, stores, errors, help and completion. Transcripts
# (golden/) run on a mount; those of PCC also on a directory that stands in for one.
. "$(dirname "$0")/lib/common.bash"
here=$(realpath "$(dirname "$0")")
. "$here/lib/transcript.bash"
. "$here/lib/fake_pcc.bash"
MANGO_CTL=${MANGO_CTL:-${ROCEFS%/*}/mango-ctl}
[ -x "$MANGO_CTL" ] || fail "$MANGO_CTL is not built"
dir=$(realpath "$dir") golden=$here/golden

# said COMMAND…: its exit status, stdout and stderr in one line.
said() { local status=0 text; text=$("$@" 2>&1) || status=$?; echo "$status $text" | xargs -0 printf %s | tr '\n' ' ' | sed 's/ $//'; }
# Expects an array of COUNT objects that each have the KEY.
json() {  # COUNT KEY COMMAND…
  local count=$1 key=$2
  shift 2
  "$@" --json >"$dir/json" || fail "$*: $?"
  python3 - "$count" "$key" "$dir/json" <<'PY' || fail "$*: $(cat "$dir/json")"
import json, sys
rows = json.load(open(sys.argv[3]))
assert isinstance(rows, list) and len(rows) == int(sys.argv[1]), rows
assert all(sys.argv[2] in row for row in rows), rows
PY
}
write_params() { printf '{\n"wai": 80,\n"g": 0.0625,\n"max_fast_steps": 3,\n"threshold": 10\n}\n' >"$dir/dcqcn_params.json"; }
mounted
tree=$mnt
# Every command in the vendor's reference is in a transcript; the reference is not part of the checkout.
reference=${ROCEFS_VENDOR_TEXTS:-/nowhere}/mango-roce-ai-advanced-features.txt

. "$here/../../tools/mango-ctl/mango-ctl.bash"
completed() {  # WORDS… UNFINISHED: offers in bash
  COMP_WORDS=("$MANGO_CTL" "$@") COMP_CWORD=$#
  _mango_ctl
  printf '%s\n' "${COMPREPLY[@]}"
}

test_case "every command of the vendor's reference is in a transcript"
[ -e "$reference" ] || skip "no text of the vendor's reference (ROCEFS_VENDOR_TEXTS)"
if [ -e "$reference" ]; then
  grep '^~\$ .*mango-ctl' "$reference" | sort -u >"$dir/typed"
  [ "$(wc -l <"$dir/typed")" -gt 30 ] || fail "where are the commands of the reference?"
  missing=$(grep -vxFf <(cat "$golden"/mango_ctl*.txt) "$dir/typed") && fail "not in a transcript: $missing"
  # Outputs of the reference, compared without repeated blanks: the reference lost them.
  for line in "mb_0: CFR Enabled: Yes" "OPS Timer: level3" "Selective Repeat Enabled: Yes" "mb_1: SoC mode" \
    "Please reload mango-drivers to apply PCC mode" "17 132044 ib_write_bw 150 0 8192" \
    "QP PID Process Ctrl Count CNP Window Size" "mb_1 Inactive - 1" "NAME STATUS ALGO NUM_THREADS" \
    "wai g max_fast_steps mode threshold max_window min_window" "aimd dcqcn rttvegas my_custom_algo" pong; do
    grep -qxF -- "$line" "$reference" || fail "not in the reference: $line"
    sed 's/  */ /g; s/ $//' "$golden"/mango_ctl*.txt | grep -xF -- "$line" >/dev/null || fail "not in a transcript: $line"
  done
fi

test_case "everything has help, and completion offers all words"
# Help: everything is explained, each word has an example; completion offers all words and options.
python3 "$here/lib/help_walk.py" "$MANGO_CTL" >"$dir/help"
expect "" "$(awk -F'\t' '$2 != "usage" && $2 != "example" && $4 == ""' "$dir/help")" "names without an explanation"
expect "" "$(awk -F'\t' '{words[$1]} $2 == "example" && index($3 " ", $1 " ") {shown[$1]}
  END {for (one in words) if (!(one in shown)) print one}' "$dir/help")" "words without an example"
words=0 options=0
while IFS=$'\037' read -r path kind name _; do
  case $kind in
    command) words=$((words + 1)) offered=$(completed $path "") ;;
    option) options=$((options + 1)) offered=$(completed $path -) name=$(grep -o -- '--[a-z_-]*' <<<"$name" | head -n 1) ;;
    *) continue ;;
  esac
  grep -qx -- "$name" <<<"$offered" || fail "not completed: $path $name"
done < <(tr '\t' '\037' <"$dir/help")
[ "$words" -ge 44 ] && [ "$options" -ge 145 ] || fail "only $words words, $options options"
version=$(sed -n "s/^VERSION := //p" "$here/../../Makefile")
expect "0 mango-ctl $version (rocefs)" "$(said "$MANGO_CTL" --version)" "--version"

test_case "commands print the reference's output on a mount"
transcript "$golden/mango_ctl_features.txt"
transcript "$golden/mango_ctl_usage.txt"
for noun in cfr ops sr; do json 2 enabled mango-ctl rdma $noun status all; done
json 2 ports mango-ctl dev list
json 1 pci mango-ctl dev show mb_1
json "$(wc -l <"$debug/dmesg")" time mango-ctl dmesg
expect "$(cat "$debug/dmesg")" "$(mango-ctl dmesg)" "dmesg"
expect 1 "$(mango-ctl dmesg -w | head -n 1 | wc -l)" "dmesg -w"

test_case "a refusal gives the reason of its file"
# The reason is the last one of this file, and is shown only if dmesg has reasons.
store level9 "$ib/mb_0/ops/ops_timer" >/dev/null
expect "1 mango-ctl: error: udp_port_range: 99999 is outside 1 to 16384" \
  "$(said mango-ctl rdma ops enable mb_0 --udp-port-range 99999)" "the last reason"
echo err >"$debug/log_level"
expect "1 mango-ctl: error: Invalid argument" "$(said mango-ctl rdma ops enable mb_0 --udp-port-range 0)" "no reason"
echo info >"$debug/log_level"

test_case "PCC commands work on a mount"
if [ -d "$ib/mb_0/pcc" ]; then
  write_params
  transcript "$golden/mango_ctl.txt"
  transcript "$golden/mango_ctl_order.txt"
  transcript "$golden/mango_ctl_card.txt"
  transcript "$golden/mango_ctl_pcc_errors.txt"
  mango-ctl proj disable rdma
  mango-ctl proj enable rdma
  transcript "$golden/mango_ctl_daemon.txt"
  # Plugins: the test's own, and the tutorial's from the reference, by the tutorial's commands.
  cp "$here/../pcc/author/my_algo.cc" "$dir"
  for author in own tutorial; do
    if [ $author = tutorial ]; then
      [ -e "$reference" ] || continue
      sed -n '/^Step 2\.1 /,/^3\. Building/{/^Step /d;/^3\. /d;p}' "$reference" >"$dir/my_algo.cc"
    fi
    transcript "$golden/mango_ctl_plugin.txt"
    expect "alpha beta" "$(mango-ctl rdma pcc list-params mb_0 my_custom_algo)" "$author: the parameters"
    expect "4 mango-ctl: error: " "$(said mango-ctl rdma pcc algo unload mb_0 my_custom_algo | cut -c 1-20)" "$author: unload while applied"
    mango-ctl rdma pcc apply mb_0 aimd
    mango-ctl rdma pcc algo unload mb_0 my_custom_algo
    rm "$(cat "$ib/mb_0/pcc/plugin_dir")/my_algo.so"
    expect "aimd dcqcn rttvegas" "$(mango-ctl rdma pcc algo list mb_0)" "$author: unloaded"
  done
  # Queue pairs under traffic: the commands list those of the files.
  mango-ctl rdma pcc apply mb_0 aimd
  mango-ctl rdma pcc start mb_0
  echo "f write mb_0 mb_1 size=64K count=1000000 qps=3" >"$debug/traffic/start"
  traced() { [ "$(mango-ctl rdma pcc trace mb_0 -n 5 | wc -l)" -eq 6 ]; }
  await traced
  for read in "rdma pcc status mb_0" "rdma pcc top mb_0 -n 1"; do
    expect "$(ls "$ib/mb_0/pcc/qps" | xargs)" "$(mango-ctl $read | awk -v me="$(cat /proc/$$/comm)" '$3 == me {print $1}' | xargs)" "$read"
  done
  json 1 qps mango-ctl rdma pcc status mb_0
  (printf 'a, "b"' >"/proc/$BASHPID/comm" && echo "g write mb_0 mb_1 size=64K count=1000000" >"$debug/traffic/start")
  for read in "status mb_0" "top mb_0 -n 1"; do
    mango-ctl --json rdma pcc $read >"$dir/json"
    python3 - "$dir/json" "$ib/mb_0/pcc/qps" <<'PY' || fail "$read is not as the files: $(cat "$dir/json")"
import json, os, sys
text = json.load(open(sys.argv[1]))
rows = (text if isinstance(text, dict) else text[0])["qps"]
said = lambda row, name: open(f"{sys.argv[2]}/{row['qp']}/{name}").read()[:-1]
assert [str(row["qp"]) for row in rows] == sorted(os.listdir(sys.argv[2]), key=int) and len(rows) == 4, rows
for name, key in ("pid", "pid"), ("comm", "process"), ("algo", "algorithm"), ("rate", "rate_bps"), ("rtt_timeouts", "rtt_timeouts"):
    assert all(said(row, name) == str(row[key]) for row in rows), (name, rows)
assert rows[3]["process"] == 'a, "b"', rows
PY
  done
  echo 1 >"$debug/traffic/g/stop"
  json 5 new_window mango-ctl rdma pcc trace mb_0 -n 5
  mango-ctl rdma pcc trace mb_0 --plot "$dir/real.svg"
  echo 1 >"$debug/traffic/f/stop"
  expect "active" "$(cat "$ib/mb_0/pcc/state")" "PCC still runs: $(tail -n 5 "$debug/dmesg")"
  mango-ctl rdma pcc stop mb_0
fi

test_case "an update of all devices is taken by all, or by none"
for device in mb_0 mb_1; do
  mango-ctl rdma pcc apply $device dcqcn
  mango-ctl rdma pcc start $device
done
mango-ctl rdma pcc update-params mb_1 dcqcn --param min_window=400000
expect "1 mango-ctl: error: mb_1: min_window 400000 is above max_window 300000" \
  "$(said mango-ctl rdma pcc update-params all dcqcn --param wai=7 --param max_window=300000)" "the second refuses"
for device in mb_0 mb_1; do
  expect "80 524288" "$(cat "$ib/$device/pcc/params/"{wai,max_window} | xargs)" "values of $device"
done
mango-ctl rdma pcc update-params all dcqcn --param wai=7
expect "7 7" "$(cat "$ib/"mb_?/pcc/params/wai | xargs)" "values that all take"
mango-ctl rdma pcc stop all

test_case "the tree comes from the option, else the environment, else the mount table"
# The tree is that of --mount, else of the environment, else of the mount table.
found() { said env -u ROCEFS_MOUNT -u SYSFS_PATH "$@" | cut -d ' ' -f 1,2; }
expect "0 NAME" "$(found ROCEFS_MOUNT="$mnt" "$MANGO_CTL" dev list)" "ROCEFS_MOUNT"
expect "0 NAME" "$(found SYSFS_PATH="$mnt" "$MANGO_CTL" dev list)" "SYSFS_PATH"
expect "0 NAME" "$(found SYSFS_PATH=/nowhere ROCEFS_MOUNT="$mnt/" "$MANGO_CTL" dev list)" "ROCEFS_MOUNT and SYSFS_PATH"
expect "1 mango-ctl: error: $dir: no rocefs is mounted there" \
  "$(said env ROCEFS_MOUNT="$mnt" "$MANGO_CTL" dev list --mount "$dir")" "--mount and ROCEFS_MOUNT"
expect "1 mango-ctl: error: /nowhere: no rocefs is mounted there" \
  "$(said env ROCEFS_MOUNT=/nowhere "$MANGO_CTL" dev list)" "a wrong ROCEFS_MOUNT"
mkdir -p "$dir/second"
"$ROCEFS" "$dir/second" >/dev/null
several=$(said env -u ROCEFS_MOUNT -u SYSFS_PATH "$MANGO_CTL" dev list)
fusermount3 -u "$dir/second"
grep -q "^1 mango-ctl: error: several rocefs are mounted: .*$mnt.*: ROCEFS_MOUNT names one, or --mount$" <<<"$several" ||
  fail "several: $several"
if status=0 && "$ROCEFS" enter -m "$mnt" true 2>/dev/null; then
  expect "0 NAME" "$(said "$ROCEFS" enter -m "$mnt" -- env -u ROCEFS_MOUNT "$MANGO_CTL" dev list | cut -d ' ' -f 1,2)" "in /sys"
  expect "1 mango-ctl: error: udp_port_range: 0 is outside 1 to 16384" \
    "$(said "$ROCEFS" enter -m "$mnt" -- env -u ROCEFS_MOUNT "$MANGO_CTL" rdma ops enable mb_0 --udp-port-range 0)" "a reason in /sys"
  said "$ROCEFS" enter -m "$mnt" -- env -u ROCEFS_MOUNT "$MANGO_CTL" proj disable rdma >/dev/null
  expect "" "$(ls "$ib")" "proj disable in /sys"
fi
unmount

test_case "a directory can stand in for a tree"
fake_tree "$dir/fake"
pcc=$tree/class/infiniband/mb_0/pcc
write_params
fake_settle none

test_case "commands print and store the same on a directory that stands in for a tree"
transcript "$golden/mango_ctl.txt" fake_settle
transcript "$golden/mango_ctl_usage.txt" fake_settle
transcript "$golden/mango_ctl_pcc_errors.txt" fake_settle
expect "$(ls -U "$pcc/params" | xargs)" "$(mango-ctl rdma pcc list-params mb_0 dcqcn)" "list-params: the order of the directory"

test_case "a command stores its knobs at once, and an update is one line"
mango-ctl rdma pcc update-params mb_0 dcqcn --params_json "$dir/dcqcn_params.json"
expect "dcqcn wai=80 g=0.0625 max_fast_steps=3 threshold=10" "$(cat "$pcc/update")" "the update"
echo '{"a": true, "b": false, "c": 1e-7, "d": -3, "e": 18446744073709551615, "f": 0.10}' >"$dir/all.json"
mango-ctl rdma pcc update-params mb_0 dcqcn --params-json "$dir/all.json"
expect "dcqcn a=true b=false c=1e-7 d=-3 e=18446744073709551615 f=0.10" "$(cat "$pcc/update")" "numbers as they are written"
echo >"$pcc/update"
mango-ctl mgmt net config mango_mgmt0 --host-ip 10.0.0.1 --soc-ip 10.0.0.2 --subnet 30
expect "class/net/mango_mgmt0/host_ip=10.0.0.1 class/net/mango_mgmt0/soc_ip=10.0.0.2 class/net/mango_mgmt0/subnet=30" \
  "$(cat "$tree/kernel/debug/rocefs/set")" "the three of an interface"
fake_settle none

test_case "a run that fails to start keeps its options, and an errno is reported"
# A run that does not start keeps its options; an errno without a reason is printed.
mv "$pcc/algo" "$pcc/algo.kept"
ln -s /dev/full "$pcc/algo"
expect "1 mango-ctl: error: No space left on device" "$(said mango-ctl rdma pcc apply mb_0 aimd)" "an errno"
mv "$pcc/algo.kept" "$pcc/algo"
mv "$pcc/state" "$pcc/state.kept"
ln -s /proc/sys/kernel/ostype "$pcc/state"  # readable, not writable
expect "1 mango-ctl: error: class/infiniband/mb_0/pcc/state" "$(said mango-ctl rdma pcc start mb_0 --num-threads 9 | cut -d : -f 1-3)" \
  "a state that cannot be stored"
expect "class/infiniband/mb_0/pcc/num_threads=1" "$(cat "$tree/kernel/debug/rocefs/set")" "num_threads as before"
mv "$pcc/state.kept" "$pcc/state"

test_case "a failure for one device is reported"
mode=$tree/class/infiniband/mb_1/pcc/mode
mv "$mode" "$mode.kept"
ln -s /proc/sys/kernel/ostype "$mode"
expect "1 mango-ctl: error: mb_1" "$(said mango-ctl rdma pcc mode set all soc | cut -d : -f 1-3)" "mode set, of which one fails"
expect "" "$(mango-ctl rdma pcc mode set all soc 2>/dev/null || true)" "stdout, of which one fails"
mv "$mode.kept" "$mode"
fake_settle none

test_case "a plugin is built and deployed, or refused"
# Plugins: built with a stand-in for the header if there is none yet.
if [ ! -e "${MANGO_CTL%/*}/../include/libmango.h" ]; then
  mkdir -p "$dir/include"
  echo "extern \"C\" { extern const int mango_pcc_algo_plugin; }" >"$dir/include/libmango.h"
  export MANGO_INCLUDE=$dir/include
fi
printf '#include <libmango.h>\nint main_part();\n' >"$dir/my_algo.cc"
transcript "$golden/mango_ctl_plugin.txt" fake_settle
expect "my_algo.so" "$(ls -A "$dir/plugins0")" "what is deployed"
expect 755 "$(stat -c %a "$dir/plugins0/my_algo.so")" "its mode"
sum=$(sha256sum <"$dir/plugins0/my_algo.so")
echo 'int broken(' >"$dir/my_algo.cc"
refused=$(said mango-ctl rdma pcc algo cross-build "$dir/my_algo.cc" mb_0)
grep -q "my_algo.cc:1:.* error: .*mango-ctl: error: $dir/my_algo.cc: the compiler refused it$" <<<"$refused" || fail "cross-build: $refused"
expect "1 mango-ctl: error: nosuchcompiler: No such file or directory" \
  "$(said env CXX=nosuchcompiler "$MANGO_CTL" --mount "$tree" rdma pcc algo cross-build "$dir/my_algo.cc" mb_0)" "CXX"
printf '#!/bin/sh\nkill -INT $PPID\nexit 1\n' >"$dir/interrupted"
chmod +x "$dir/interrupted"
expect "1 mango-ctl: error: $dir/my_algo.cc: the compiler refused it" \
  "$(said env CXX="$dir/interrupted -Wall" "$MANGO_CTL" --mount "$tree" rdma pcc algo cross-build "$dir/my_algo.cc" mb_0)" "Ctrl-C"
expect "my_algo.so" "$(ls -A "$dir/plugins0")" "nothing half"
expect "$sum" "$(sha256sum <"$dir/plugins0/my_algo.so")" "the plugin that was there"

test_case "completion reads the mount"
completes() { expect "$1" "$(completed --mount "$tree" "${@:2}" | sort | xargs)" "completion of ${*:2}"; }
completes "all mb_0 mb_1" rdma cfr enable ""
completes "mb_1" rdma pcc start mb_1
completes "mb_0 mb_1" rdma pcc ping ""
completes "aimd dcqcn my_custom_algo rttvegas" rdma pcc apply mb_0 ""
completes "aimd dcqcn my_custom_algo rttvegas" rdma pcc algo unload mb_0 ""
completes "alpha= beta=" rdma pcc update-params mb_0 my_custom_algo --param ""
completes "mango_mgmt0 mango_mgmt1" mgmt net config ""
completes "--ops-timer" rdma ops enable mb_0 --o
completes "level1 level2 level3 level4 level5" rdma ops enable mb_0 --ops-timer l
completes "soc" rdma pcc mode set all s
completes "" rdma pcc apply nosuch ""
completes "" rdma pcc start mb_0 x

test_case "queue pairs and trace are shown as in the reference"
mango-ctl rdma pcc apply mb_0 aimd
mango-ctl rdma pcc start mb_0
fake_qp mb_0 17 132044 ib_write_bw 150 0 8192
fake_qp mb_0 18 132044 ib_write_bw 148 2 8192
cat >"$pcc/trace" <<'CSV'
time_ns,qp,event,old_window,new_window,cnp,rtt_ns,algo
60000,17,hold,8192,8192,0,12300,aimd
120000,17,raise,4294967295,8192,0,12300,aimd
180000,18,cut,8292,4146,2,12400,aimd
240000,17,raise,8192,8292,0,12345,aimd
CSV
fake_settle none
transcript "$golden/mango_ctl_qps.txt"
mango-ctl rdma pcc trace mb_0 --csv "$dir/trace.csv" --plot "$dir/trace.svg"
cmp "$pcc/trace" "$dir/trace.csv" || fail "trace --csv"
expect "$(cat "$pcc/trace")" "$(mango-ctl rdma pcc trace mb_0 --csv -)" "trace --csv -"
grep -q "QP 17" "$dir/trace.svg" && grep -q CNP "$dir/trace.svg" || fail "trace --plot"
mango-ctl rdma pcc trace mb_0 --plot "$dir/trace.png"
expect 89504e47 "$(head -c 4 "$dir/trace.png" | od -An -tx1 | tr -d ' ')" "trace --plot: a PNG"
head -n 1 "$pcc/trace" >"$dir/header" && mv "$dir/header" "$pcc/trace"
expect "1 mango-ctl: error: the trace has no window to draw" "$(said mango-ctl rdma pcc trace mb_0 --plot "$dir/none.svg")" "an empty trace"
[ -z "$(find "$dir" -name '.trace*' -o -name none.svg)" ] || fail "left behind: $(find "$dir" -name '.*')"

test_case "probes that time out are counted, and those who see no round trip are named"
cp "$pcc/snapshot" "$dir/snapshot"
sed -i 's/^17,\(.*\),12345,0,/17,\1,12345,149,/; s/^18,\(.*\),12345,0,/18,\1,12345,20,/' "$pcc/snapshot"
hint="every recent RTT probe of QP 17 timed out: the algorithm does not see the round trip, let it wait longer (rttvegas: timeout_us)"
expect "RTT timeouts by QP: 17: 149, 18: 20
Hint: $hint" "$(mango-ctl rdma pcc status mb_0 | tail -n 2)" "status"
expect "$hint" "$(mango-ctl --json rdma pcc status mb_0 | python3 -c 'import json, sys; print(*json.load(sys.stdin)[0]["hints"])')" "status --json"
mv "$dir/snapshot" "$pcc/snapshot"

test_case "a program that has claimed the windows is named"
echo inactive >"$pcc/state"
echo "my (own) (pid 4711)" >"$pcc/owner"
echo 3 >"$pcc/num_threads_active"
mango-ctl rdma pcc status >"$dir/owned"
grep -q "^17 .* 8192$" "$dir/owned" && grep -qE "^mb_0 +Program +- +3$" "$dir/owned" || fail "status: $(cat "$dir/owned")"
expect "mb_0: PCC of program my (own) (pid 4711), threads 3, QPs 2" "$(mango-ctl rdma pcc top mb_0 -n 1 | head -n 1)" "top"
for read in "status mb_0" "top mb_0 -n 1"; do
  expect "my (own) 4711 3" "$(mango-ctl --json rdma pcc $read | python3 -c '
import json, sys
said = json.load(sys.stdin)
said = said[0] if isinstance(said, list) else said
print(said["owner"]["process"], said["owner"]["pid"], said["num_threads"])')" "$read --json"
done
expect "4 mango-ctl: error: claimed by my (own) (pid 4711)" "$(said mango-ctl rdma pcc stop mb_0)" "stop"
expect inactive "$(cat "$pcc/state")" "a stop that is refused"
echo none >"$pcc/owner"
echo active >"$pcc/state"

test_case "--json may precede or follow the command"
json 2 mode mango-ctl rdma pcc mode get all
json 2 device mango-ctl rdma pcc dev
json 1 algorithms mango-ctl rdma pcc algo list mb_0
json 2 qps mango-ctl rdma pcc status
json 1 parameters mango-ctl rdma pcc list-params mb_0 aimd
json 2 subnet mango-ctl mgmt net show
json 0 qp mango-ctl rdma pcc trace mb_0
python3 -m json.tool <<<"$(mango-ctl --json rdma pcc top mb_0 -n 1)" >/dev/null || fail "top --json"

test_case "a blank stays between the columns of the status, however long a name is"
algorithm=$(cat "$pcc/algo")
expect "NAME        STATUS    ALGO        NUM_THREADS" "$(mango-ctl rdma pcc status | grep ^NAME)" "short names"
echo twelve_chars >"$pcc/algo"
grep -qE "^mb_0 +Active +twelve_chars +[0-9]+$" <<<"$(mango-ctl rdma pcc status)" || fail "$(mango-ctl rdma pcc status | tail -n 4)"
echo "$algorithm" >"$pcc/algo"

test_case "the live view fits the terminal, and cuts names only where it is narrow"
name=an_algorithm_with_a_name_of_31_le
echo "$name" >"$pcc/algo"
echo "16777215,4294967294,2,150,99999900,0,400000000000,4194304,fifteen_letters,$name" >>"$pcc/snapshot"
drawn() {  # COLUMNS: lines of a refresh on a terminal of that width
  script -qec "stty rows 24 cols $1; $MANGO_CTL --mount $tree rdma pcc top mb_0 -n 1" /dev/null </dev/null |
    sed 's/\x1b\[[?0-9]*[a-zA-Z]//g; s/\r//g'
}
drawn 80 >"$dir/narrow"
expect 5 "$(grep -c "" "$dir/narrow")" "lines: $(cat "$dir/narrow")"
expect "" "$(grep -E '.{81}' "$dir/narrow")" "lines of more than 80 characters"
grep -qE '^mb_0: PCC active, algorithm an_al.*, QPs 3$' "$dir/narrow" || fail "the first line: $(cat "$dir/narrow")"
grep -qE '^QP .*CALLS/s$' "$dir/narrow" || fail "names: $(cat "$dir/narrow")"
grep -qE '^16777215 4194304 fif[^ ]* an_a[^ ]* +4294967294 +- +99999.9us +400.00Gb/s +-$' "$dir/narrow" || fail "a line: $(cat "$dir/narrow")"
drawn 200 >"$dir/wide"
grep -qE "^16777215 +4194304 +fifteen_letters +$name +4294967294 " "$dir/wide" || fail "a wide terminal: $(cat "$dir/wide")"
sed -i '$d' "$pcc/snapshot"
echo aimd >"$pcc/algo"

test_case "the live view shows rates and restores the terminal"
# The live view: rates between two refreshes; Ctrl-C restores the terminal.
(
  await [ -s "$dir/top" ]
  sed 's/^18,8192,2,/18,8192,52,/' "$pcc/snapshot" >"$dir/later" && mv "$dir/later" "$pcc/snapshot"
  echo 2000000000 >"$tree/kernel/debug/rocefs/clock/now_ns"
) &
mango-ctl rdma pcc top mb_0 --interval 0.5 -n 3 >"$dir/top"
wait $!
expect "9 50" "$(grep -c '^1[78] \|^mb_0\|^QP' "$dir/top" | sed 's/12/9/') $(awk '$1 == 18 && $6 > 0 {print $6; exit}' "$dir/top")" "top"
python3 "$here/lib/top_terminal.py" "$MANGO_CTL" "$tree" || fail "top on a terminal"
rm -r "$tree/class/infiniband/mb_0"
expect "2 mango-ctl: error: --count: '0': a number of refreshes is wanted" "$(said mango-ctl rdma pcc top mb_0 -n 0)" "no refresh"
expect "3 mango-ctl: error: mb_0: no such device" "$(said mango-ctl rdma pcc top mb_0 -n 1)" "top without a device"
