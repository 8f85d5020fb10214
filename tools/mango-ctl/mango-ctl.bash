# bash completion of mango-ctl. Words stand here; names of devices and algorithms come from the mount.

# What mango-ctl prints for these words, with the options that choose the mount; nothing if it fails.
_mango_ctl_ask() { "${_mango_ctl_program[@]}" "$@" 2>/dev/null; }

# The words that may follow those that stand there, without options.
_mango_ctl_words() {
  local devices="_devices" all="all _devices"
  case "$*" in
    "") echo rdma mgmt proj dev dmesg ;;
    rdma) echo cfr ops sr pcc ;;
    "rdma cfr" | "rdma ops" | "rdma sr") echo enable disable status ;;
    "rdma pcc")
      echo mode dev algo apply start stop status list-params update-params ping echo top trace
      ;;
    "rdma pcc mode") echo set get ;;
    "rdma pcc algo") echo list load unload cross-build ;;
    "rdma pcc mode set "?*) echo soc host ;;
    "rdma pcc apply "* | "rdma pcc algo unload "* | "rdma pcc list-params "* | "rdma pcc update-params "*)
      [ $# -ne 4 ] || [ "$3" = algo ] || echo _algorithms "$4"
      [ $# -ne 5 ] || [ "$3" != algo ] || echo _algorithms "$5"
      ;;
    "rdma pcc algo cross-build") echo _files ;;
    "rdma pcc algo cross-build "?*) [ $# -ne 5 ] || echo $all ;;
    "rdma "*" enable" | "rdma "*" disable" | "rdma "*" status" | "rdma pcc mode "[sg]et) echo $all ;;
    "rdma pcc apply" | "rdma pcc start" | "rdma pcc stop" | "rdma pcc update-params") echo $all ;;
    "rdma pcc algo "*) [ $# -ne 4 ] || echo $all ;;
    "rdma pcc list-params" | "rdma pcc ping" | "rdma pcc top" | "rdma pcc trace") echo $devices ;;
    "rdma pcc echo "?*) [ $# -ne 4 ] || echo $devices ;;
    mgmt) echo net ;;
    "mgmt net") echo config show ;;
    "mgmt net config" | "mgmt net show") echo _interfaces ;;
    proj) echo enable disable ;;
    "proj enable" | "proj disable") echo rdma ;;
    dev) echo list show ;;
    "dev show") echo $all ;;
  esac
}

_mango_ctl_options() {
  echo --help --json --mount
  case "$*" in
    "") echo --version ;;
    "rdma ops enable"*) echo --udp-port-range --ops-timer ;;
    "rdma pcc start"*) echo --num-threads --interval-us ;;
    "rdma pcc update-params"*) echo --param --params_json ;;
    "rdma pcc top"*) echo --interval --count ;;
    "rdma pcc trace"*) echo --count --csv --plot ;;
    "mgmt net config"*) echo --host-ip --soc-ip --subnet ;;
    dmesg) echo --follow ;;
  esac
}

_mango_ctl() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=() i offered
  local _mango_ctl_program=("${COMP_WORDS[0]}")
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      --mount) _mango_ctl_program+=(--mount "${COMP_WORDS[++i]}") ;;
      --udp-port-range | --ops-timer | --num-threads | --interval* | --param* | --count | -n | --csv | --plot | \
        --*-ip | --subnet) i=$((i + 1)) ;;
      -*) ;;
      *) words+=("${COMP_WORDS[i]}") ;;
    esac
  done
  COMPREPLY=()
  case $before in
    --mount) COMPREPLY=($(compgen -d -- "$word")) && return ;;
    --params_json | --params-json | --csv | --plot) COMPREPLY=($(compgen -f -- "$word")) && return ;;
    --ops-timer) COMPREPLY=($(compgen -W "default level1 level2 level3 level4 level5" -- "$word")) && return ;;
    --param)
      COMPREPLY=($(compgen -S = -W "$(_mango_ctl_ask rdma pcc list-params "${words[@]:3:2}")" -- "$word"))
      compopt -o nospace 2>/dev/null
      return
      ;;
    --udp-port-range | --num-threads | --interval* | --count | -n | --*-ip | --subnet) return ;;
  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$(_mango_ctl_options "${words[@]}")" -- "$word"))
    return
  fi
  offered=$(_mango_ctl_words "${words[@]}")
  case $offered in
    _files) COMPREPLY=($(compgen -f -- "$word")) && return ;;
    "_algorithms all") offered=$(_mango_ctl_ask rdma pcc algo list all | sed 's/^[^:]*: //') ;;
    _algorithms*) offered=$(_mango_ctl_ask rdma pcc algo list "${offered#* }") ;;
    _interfaces) offered=$(_mango_ctl_ask mgmt net show | sed 's/:.*//') ;;
    *_devices) offered="${offered%_devices} $(_mango_ctl_ask rdma pcc dev)" ;;
  esac
  COMPREPLY=($(compgen -W "$offered" -- "$word"))
}
complete -F _mango_ctl mango-ctl
