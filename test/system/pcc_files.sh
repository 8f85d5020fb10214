#!/bin/bash
# PCC by its files: algorithms are applied, tuned and run under traffic by echo and cat, in both
# clocks; every end of a run gives the windows back, and the settings survive a worker's death.
. "$(dirname "$0")/lib/common.bash"
pccd=$(dirname "$ROCEFS")/mango-pccd
[ -x "$pccd" ] || skip "no mango-pccd here"
include=$(realpath "$(dirname "$0")/../../pcc/api")
pcc=$ib/mb_0/pcc
driver=$mnt/bus/pci/drivers/mango_core address=0000:2b:00.0
busy="Device or resource busy" invalid="Invalid argument"

compile() {  # NAME TEXT: a plugin that does TEXT with its window
  cat >"$dir/$1.cc" <<CC
#include <libmango.h>
static void algo(void*) { $2 }
const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "$1", .desc = "a test", .init_params = nullptr, .destroy_params = nullptr, .algo_fn = algo};
CC
  "${CXX:-c++}" -std=c++20 -O1 -shared -fPIC -I"$include" -o "$1.so" "$dir/$1.cc"
}
reason() { grep -o "pcc/$1: .*" "$debug/dmesg" | tail -n 1; }
card() { pgrep -P "$(worker_pid)" -f "^[^ ]*mango-pccd mb_0"; }
counted() { [ "$(cat "$pcc/qps/17/ctrl_count")" -gt "${1:-0}" ]; }

both_clocks() {
  expect "aimd dcqcn rttvegas" "$(cat "$pcc/algos")" "algorithms"
  expect none "$(cat "$pcc/algo")" "applied"
  expect inactive "$(cat "$pcc/state")" "state"
  expect soc "$(cat "$pcc/mode_active")" "mode"
  expect "$invalid" "$(store start "$pcc/state")" "a start of nothing"
  [[ $(reason state) == *"no algorithm is applied (EINVAL)" ]] || fail "the reason: $(reason state)"
  expect "$invalid" "$(store bbr "$pcc/algo")" "an unknown algorithm"
  expect "" "$(ls "$pcc/params")" "parameters of none"
  expect ok "$(store 1 "$ib/mb_0/cfr/enable")" "CFR"

  expect ok "$(store dcqcn "$pcc/algo")" "apply"
  expect "wai g max_fast_steps mode threshold max_window min_window" "$(ls -U "$pcc/params" | xargs)" "parameters"
  expect 80 "$(cat "$pcc/params/wai")" "wai"
  expect ok "$(store 0x51 "$pcc/params/wai")" "wai"
  expect 81 "$(cat "$pcc/params/wai")" "wai"
  expect ok "$(store "dcqcn wai=82 g=0.5" "$pcc/update")" "update"
  expect "$invalid" "$(store "dcqcn wai=90 g=x" "$pcc/update")" "an update with a bad value"
  expect "$invalid" "$(store "dcqcn wai=90 gain=1" "$pcc/update")" "an update with an unknown key"
  expect "$invalid" "$(store "aimd alpha=90" "$pcc/update")" "an update of what is not applied"
  expect "82 0.5" "$(cat "$pcc/params/wai" "$pcc/params/g" | xargs)" "all or nothing"
  expect ok "$(store aimd "$pcc/algo")" "apply"
  expect "alpha beta" "$(ls -U "$pcc/params" | xargs)" "parameters"

  expect ok "$(store start "$pcc/state")" "start"
  expect active "$(cat "$pcc/state")" "state"
  expect "$busy" "$(store start "$pcc/state")" "a second start"
  expect "$busy" "$(store 0 "$ib/mb_0/cfr/enable")" "CFR while PCC runs"
  expect "$busy" "$(store class/infiniband/mb_0/cfr/enable=0 "$debug/set")" "CFR while PCC runs, by set"
  expect inactive "$(cat "$ib/mb_1/pcc/state")" "the other device"
  writer=$BASHPID
  echo "f write mb_0 mb_1 qps=2 size=64K count=1000000" >"$debug/traffic/start"
  expect "17 18" "$(ls "$pcc/qps" | xargs)" "queue pairs"
  expect aimd "$(cat "$pcc/qps/18/algo")" "its algorithm"
  expect "$writer" "$(cat "$pcc/qps/17/pid")" "its pid"
}

after_a_while() {  # what is the same in both clocks when algorithms were called
  grep -qE "^17 +$writer +[^ ]+ +[1-9][0-9]* +0 +[1-9][0-9]*\$" "$pcc/status" || fail "status: $(cat "$pcc/status")"
  head -n 1 "$pcc/trace" | grep -qx time_ns,qp,event,old_window,new_window,cnp,rtt_ns,algo || fail "trace's names"
  grep -qE '^[0-9]+,17,raise,[0-9]+,[0-9]+,0,0,aimd$' "$pcc/trace" || fail "trace: $(tail -n 3 "$pcc/trace")"
  expect ok "$(store rttvegas "$pcc/qps/18/algo")" "an algorithm of one queue pair"
  expect "aimd rttvegas" "$(cat "$pcc"/qps/{17,18}/algo | xargs)" "algorithms"
}

ended() {
  expect inactive "$(cat "$pcc/state")" "state $1"
  expect ok "$(store 1 "$ib/mb_0/cfr/enable")" "CFR $1"
}

cd "$dir"
mounted

test_case "the driver reports the mode of each device"
expect "$(printf '%s\n' "mango_core 0000:2b:00.0: PCC mode: (soc)" "mango_core 0000:ac:00.0: PCC mode: (soc)")" \
  "$(grep PCC "$debug/dmesg" | cut -d']' -f2- | cut -c2-)" "the driver's lines"

test_case "an algorithm is applied, tuned and started in real time"
both_clocks

test_case "an algorithm is called, and its effect is shown"
await counted 10
after_a_while
[ "$(cat "$pcc/qps/17/window")" -gt 524288 ] || fail "its window: $(cat "$pcc/qps/17/window")"

test_case "rpc answers ping and echo"
exec 5<>"$pcc/rpc" 6<>"$pcc/rpc"
echo ping >&5
echo "echo Hello  world" >&6
expect pong "$(cat <&5)" "ping"
expect "Hello  world" "$(cat <&6)" "echo"
exec 5>&- 6>&-

test_case "a stop gives the windows back"
expect ok "$(store stop "$pcc/state")" "stop"
expect ok "$(store stop "$pcc/state")" "stop again"
ended "after stop"
expect 4294967295 "$(cat "$pcc/qps/17/window")" "no window"
await state_is f running
echo 1 >"$debug/traffic/f/stop"
expect "" "$(ls "$pcc/qps")" "queue pairs that have gone"

test_case "runs that have ended leave no memory in mango-pccd"
run_and_stop() {
  expect ok "$(store start "$pcc/state")" "start"
  expect ok "$(store stop "$pcc/state")" "stop"
}
reserved() { awk '$1 == "VmSize:" {print $2}' "/proc/$(card)/status"; }
for run in 1 2 3; do run_and_stop; done
before=$(reserved)
for run in {1..20}; do run_and_stop; done
[ $(($(reserved) - before)) -lt 640 ] || fail "KiB after 20 runs: $before, $(reserved)"

test_case "refused plugins hide no others, and a crash ends nothing else"
cd "$(cat "$pcc/plugin_dir")"
compile adder "mango_pcc_window_update(mango_pcc_window_current() + 1);"
compile crasher "volatile int zero = 0; mango_pcc_window_update(100 / zero);"
echo "no plugin" >broken.so
expect "Exec format error" "$(store 1 "$pcc/load")" "load with a broken one"
grep -qx "adder.so: loaded adder" "$pcc/load" || fail "load: $(cat "$pcc/load")"
grep -q "^broken.so: refused: " "$pcc/load" || fail "load: $(cat "$pcc/load")"
expect "adder aimd crasher dcqcn rttvegas" "$(tr ' ' '\n' <"$pcc/algos" | sort | xargs)" "algorithms"
expect "$busy" "$(store adder "$pcc/algo" >/dev/null; store adder "$pcc/unload")" "unload of what is applied"
expect "Operation not permitted" "$(store aimd "$pcc/unload")" "unload of what is built in"
expect ok "$(store crasher "$pcc/algo")" "apply"
expect ok "$(store adder "$pcc/unload")" "unload"
expect ok "$(store start "$pcc/state")" "start"
echo "g write mb_0 mb_1 size=64K count=1000000" >"$debug/traffic/start"
await grep -qx inactive "$pcc/state"
grep -q "^Last error: .*SIGFPE.*crasher" "$pcc/status" || fail "status: $(cat "$pcc/status")"
grep -q "rocefs: mb_0: PCC ended: .*SIGFPE" "$debug/dmesg" || fail "dmesg says nothing"
ended "after a crash"
state_is g running || fail "traffic: $(cat "$debug/traffic/g/state")"
expect "none aimd dcqcn rttvegas" "$(cat "$pcc/algo" "$pcc/algos" | xargs)" "what a new process has"
rm -f broken.so crasher.so
cd "$dir"

test_case "kill -9, unbind and a reset also end a run"
for way in kill driver reset; do
  expect ok "$(store aimd "$pcc/algo")" "apply before $way"
  expect ok "$(store start "$pcc/state")" "start before $way"
  case $way in
    kill)
      kill -9 "$(card)"
      await grep -qx inactive "$pcc/state"
      grep -q "^Last error: " "$pcc/status" || fail "status says nothing" ;;
    driver)
      echo host >"$pcc/mode"
      expect soc "$(cat "$pcc/mode_active")" "the mode before a reload"
      echo $address >"$driver/unbind"
      [ ! -e "$pcc" ] || fail "pcc/ is still there"
      expect 192.168.10.1 "$(cat "$mnt/class/net/mango_mgmt0/host_ip")" "the link stays"
      echo $address >"$driver/bind"
      expect "host host" "$(cat "$pcc/mode" "$pcc/mode_active" | xargs)" "the mode after it"
      tail -n 3 "$debug/dmesg" | grep -q "mango_core $address: PCC mode: (host)" || fail "no line"
      expect "Operation not supported" "$(store ping "$pcc/rpc")" "ping in host mode" ;;
    reset)
      expect ok "$(store 1 "$debug/reset")" "reset"
      expect "soc soc" "$(cat "$pcc/mode" "$pcc/mode_active" | xargs)" "modes after a reset" ;;
  esac
  ended "after $way"
  expect none "$(cat "$pcc/algo")" "applied after $way"
done

test_case "without addresses no order reaches the card"
mgmt=class/net/mango_mgmt0
expect "$invalid" "$(store "" "$mnt/$mgmt/soc_ip")" "one address alone"
expect ok "$(store "$mgmt/host_ip='' $mgmt/soc_ip='' $mgmt/subnet=''" "$debug/set")" "no addresses"
for order in algo=aimd state=start load=1 unload=adder "update=aimd alpha=1" rpc=ping; do
  expect "No route to host" "$(store "${order#*=}" "$pcc/${order%%=*}")" "$order"
done
[[ $(reason algo) == *mango_mgmt0* ]] || fail "the reason: $(reason algo)"
expect ok "$(store 1 "$debug/reset")" "reset"
rm -f "$(cat "$pcc/plugin_dir")/adder.so"

test_case "a worker that dies ends a run, and the settings are kept"
echo host >"$pcc/mode"
echo $address >"$driver/unbind"
echo $address >"$driver/bind"
echo soc >"$pcc/mode"
echo "$dir" >"$pcc/plugin_dir"
echo 7 >"$pcc/interval_us"
echo aimd >"$pcc/algo"
echo start >"$pcc/state"
exec 3<"$pcc/state"
kill -9 "$(worker_pid)"
expect "soc host 7 inactive none" \
  "$(cat "$pcc/mode" "$pcc/mode_active" "$pcc/interval_us" "$pcc/state" "$pcc/algo" | xargs)" "what was set"
expect "$dir" "$(cat "$pcc/plugin_dir")" "where plugins lie"
expect inactive "$(cat <&3)" "a file that was open"
exec 3<&-
ended "with its worker"

test_case "a program that sets the windows keeps PCC out until it ends"
library=$(dirname "$ROCEFS")/../lib
[ -e "$library/libmango.so" ] || skip "no libmango.so here"
cat >program.c <<'C'
#include <libmango.h>
#include <stdio.h>
static void algo(void* p) { (void)p; mango_pcc_window_update(9000); }
int main(int argc, char** argv) {
  mango_pcc_h pcc;
  mango_status_e status = mango_pcc_create(argc > 1 ? argv[1] : "mb_0", &pcc);
  if (!status) status = mango_pcc_ctrl_reg_algo(pcc, 0, algo, NULL, 0);
  if (!status) status = mango_pcc_ctrl_run(pcc, 1);
  puts(mango_status_str(status));
  fflush(stdout);
  while (getchar() != EOF) continue;
  return status != MANGO_STATUS_OK;
}
C
"${CC:-cc}" -I"$include" program.c -o program -L"$library" -lmango -Wl,-rpath,"$(realpath "$library")"
export ROCEFS_MOUNT=$mnt
window_is() { [ "$(cat "$pcc"/qps/*/window)" = "$1" ]; }
echo "h write mb_0 mb_1 size=64K count=10000000" >"$debug/traffic/start"
echo aimd >"$pcc/algo"
for way in close kill driver; do
  coproc PROGRAM { exec ./program; }
  program=$PROGRAM_PID
  read -r line <&"${PROGRAM[0]}"
  expect success "$line" "the program, before $way"
  await window_is 9000
  grep -q "^Owner: program (pid $program)\$" "$pcc/status" || fail "status: $(cat "$pcc/status")"
  expect "$busy" "$(store start "$pcc/state")" "a start while a program has the windows"
  expect "no such device" "$(./program mb_7 </dev/null)" "another device"
  expect busy "$(./program </dev/null)" "a second program"
  expect "$busy" "$(store 0 "$ib/mb_0/cfr/enable")" "CFR while a program has the windows"
  case $way in
    close) eval "exec ${PROGRAM[1]}>&-" ;;
    kill) kill -9 "$program" ;;
    driver) echo $address >"$driver/unbind" && echo $address >"$driver/bind" && kill "$program" ;;
  esac
  wait "$program" || true
  [ "$way" = driver ] || await window_is 4294967295
  ended "after the program's end by $way"
done

test_case "the card's process ends with the mount"
echo aimd >"$pcc/algo"
echo start >"$pcc/state"
card=$(card)
unmounted
[ ! -e "/proc/$card" ] || fail "mango-pccd is left"

test_case "an algorithm is applied, tuned and called in virtual time"
mounted -o clock=virtual,seed=3
both_clocks
echo 5ms >"$debug/clock/advance"
[ "$(cat "$pcc/qps/17/ctrl_count")" = 83 ] || fail "calls in 5 ms, 60 us apart: $(cat "$pcc/qps/17/ctrl_count")"
echo 100 >"$pcc/interval_us"
echo 5ms >"$debug/clock/advance"
cat "$debug/clock/trace_hash" "$pcc/trace" >"$dir/first"
cp "$debug/clock/log" "$dir/log"
unmounted

test_case "a replay of the log is the same run"
mounted -o clock=virtual,seed=3
while IFS= read -r line; do [[ $line == '#'* ]] || echo "$line" >"$debug/clock/at"; done <"$dir/log"
echo 10ms >"$debug/clock/advance"
cat "$debug/clock/trace_hash" "$pcc/trace" >"$dir/again"
cmp "$dir/first" "$dir/again" || fail "a replay is another run"
