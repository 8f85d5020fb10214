# A plain directory that looks like the tree, and a hand that does what a daemon would: for what
# mango-ctl prints and stores, whatever the daemon does with it.

# DIRECTORY
fake_tree() {
  tree=$1
  local index pci name
  mkdir -p "$tree"/{class/infiniband,class/net,bus/pci/devices,bus/pci/drivers/mango_core} \
    "$tree/kernel/debug/rocefs/clock"
  for index in 0 1; do
    pci=$(fake_pci mb_$index) name=$tree/devices/pci${pci%:*}/$pci
    mkdir -p "$name/infiniband/mb_$index/pcc"/{params,qps} "$tree/class/net/mango_mgmt$index" "$dir/plugins$index"
    echo 0x1fc9 >"$name/vendor"
    echo 0x4d42 >"$name/device"
    ln -s "../../../devices/pci${pci%:*}/$pci" "$tree/bus/pci/devices/$pci"
    ln -s "../../../$pci" "$name/infiniband/mb_$index/device"
    fake_files "$name/infiniband/mb_$index/pcc" mode=soc mode_active=soc algos="aimd dcqcn rttvegas" \
      algo=none state=inactive num_threads=1 num_threads_active=1 interval_us=60 update= load= unload= \
      plugin_dir="$dir/plugins$index" owner=none slow_calls=0 status= rpc= \
      snapshot=qp,window,cnp,ctrl_count,rtt_ns,rtt_timeouts,rate,pid,comm,algo
    fake_files "$tree/class/net/mango_mgmt$index" host_ip="192.168.$((index + 1))0.1" \
      soc_ip="192.168.$((index + 1))0.2" subnet=24
  done
  fake_files "$tree/kernel/debug/rocefs" dmesg="[    0.000000] rocefs: fake" log_level=info set=
  fake_files "$tree/kernel/debug/rocefs/clock" now_ns=1000000000
  fake_files "$tree/bus/pci/drivers/mango_core" bind= unbind=
  fake_driver enable
}
fake_files() {  # DIRECTORY NAME=VALUE…
  local in=$1 one
  for one in "${@:2}"; do echo "${one#*=}" >"$in/${one%%=*}"; done
}
fake_pci() { case $1 in mb_0) echo 0000:2b:00.0 ;; mb_1) echo 0000:ac:00.0 ;; esac; }

# The driver takes the devices, or leaves them.
fake_driver() {
  local name pci
  for name in mb_0 mb_1; do
    pci=$(fake_pci $name)
    rm -f "$tree/class/infiniband/$name" "$tree/bus/pci/drivers/mango_core/$pci"
    [ "$1" = enable ] || continue
    ln -s "../../devices/pci${pci%:*}/$pci/infiniband/$name" "$tree/class/infiniband/$name"
    ln -s "../../../../devices/pci${pci%:*}/$pci" "$tree/bus/pci/drivers/mango_core/$pci"
    cp "$tree/class/infiniband/$name/pcc/mode" "$tree/class/infiniband/$name/pcc/mode_active"
    fake_files "$tree/class/infiniband/$name/pcc" algo=none state=inactive num_threads=1 num_threads_active=1 interval_us=60
    fake_params "$tree/class/infiniband/$name/pcc" none
    echo "[ 4593.022832] mango_core $pci: PCC mode: ($(cat "$tree/class/infiniband/$name/pcc/mode"))" \
      >>"$tree/kernel/debug/rocefs/dmesg"
  done
}
# DEVICE QPN PID PROCESS CTRL_COUNT CNP WINDOW
fake_qp() {
  local qp=$tree/class/infiniband/$1/pcc/qps/$2
  mkdir -p "$qp"
  fake_files "$qp" pid="$3" comm="$4" ctrl_count="$5" cnp="$6" window="$7" rtt_ns=12345 rtt_timeouts=0 \
    rate=9870000000 algo=-
  echo "$2,$7,$6,$5,12345,0,9870000000,$3,$4,-" >>"${qp%/qps/*}/snapshot"
}

# Does what a daemon would have done because of the command that has just run. Called some hundred times:
# with no process for what the shell can do.
fake_settle() {
  local name pcc word words update state algorithm load plugins
  case $1 in
    *"proj disable rdma") fake_driver disable ;;
    *"proj enable rdma") fake_driver enable ;;
  esac
  read -ra words <"$tree/kernel/debug/rocefs/set" || true
  for word in "${words[@]}"; do echo "${word#*=}" >"$tree/${word%%=*}"; done
  echo >"$tree/kernel/debug/rocefs/set"
  for name in mb_0 mb_1; do
    pcc=$tree/class/infiniband/$name/pcc
    [ -d "$pcc" ] || continue
    read -r state <"$pcc/state"
    case $state in start) echo active >"$pcc/state" ;; stop) echo inactive >"$pcc/state" ;; esac
    [ "$state" = active ] || echo "$(<"$pcc/num_threads")" >"$pcc/num_threads_active"
    read -r algorithm <"$pcc/algo"
    fake_params "$pcc" "$algorithm"
    read -ra update <"$pcc/update" || true
    for word in "${update[@]:1}"; do echo "${word#*=}" >"$pcc/params/${word%%=*}"; done
    echo >"$pcc/update"
    read -r load <"$pcc/load" || true
    read -r plugins <"$pcc/plugin_dir"
    if [ -n "$load" ] && [ -e "$plugins/my_algo.so" ]; then
      grep -q my_custom "$pcc/algos" || sed -i 's/$/ my_custom_algo/' "$pcc/algos"
    fi
    echo >"$pcc/load"
    fake_status $name >"$pcc/status"
  done
}
# The algorithm's own, with their defaults; those of the one before go.
fake_params() {
  local params=$1/params applied=
  { read -r applied <"$1/.applied"; } 2>/dev/null || true
  [ "$applied" != "$2" ] || return 0
  echo "$2" >"$1/.applied"
  rm -f "$params"/*
  case $2 in
    aimd | my_custom_algo) fake_files "$params" alpha=100 beta=0.5 ;;
    dcqcn) fake_files "$params" wai=80 g=0.0625 max_fast_steps=3 mode=1 threshold=0 max_window=524288 min_window=4096 ;;
  esac
}
fake_status() {
  local pcc=$tree/class/infiniband/$1/pcc qp file value values algorithm threads
  printf 'Device: %s\n%s\nActive QPs:\n' "$1" ============================================================
  printf '%-8s  %-8s  %-16s  %-10s  %-8s  %s\n' QP PID Process "Ctrl Count" CNP "Window Size"
  echo ---------------------------------------------------------------------------
  for qp in "$pcc"/qps/*; do  # their numbers have as many digits
    [ -d "$qp" ] || continue
    values=()
    for file in pid comm ctrl_count cnp window; do
      read -r value <"$qp/$file"
      [ "$file $value" != "window 4294967295" ] || value=unlimited
      values+=("$value")
    done
    printf '%-8s  %-8s  %-16s  %-10s  %-8s  %s\n' "${qp##*/}" "${values[@]}"
  done
  read -r algorithm <"$pcc/algo"
  read -r threads <"$pcc/num_threads_active"
  printf 'Algorithm: %s\nNum threads: %s\n' "${algorithm/none/-}" "$threads"
  [ "$algorithm" = none ] || echo Parameters:
  for file in "$pcc"/params/*; do
    [ -e "$file" ] || continue
    read -r value <"$file"
    printf '  %s: %s\n' "${file##*/}" "$value"
  done
}
