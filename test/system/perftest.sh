#!/bin/bash
# Perftest's programs between mb_0 and mb_1, with what each of them has of services and options.
# Every service and every option of a program once, which takes half a minute; ROCEFS_PERFTEST=all: every
# option with every service, and the same between two mounts over an uplink.
lib=$(realpath "$(dirname "$0")/lib")
everything=false
[ "${ROCEFS_PERFTEST:-}" != all ] || everything=true
if $everything && [ "${1:-}" != inside ]; then
  . "$lib/two_mounts.bash"
  has_namespaces
  exec "${spaces[@]}" "$0" inside
fi
. "$lib/common.bash"
. "$lib/verbs.bash"
needs ib_write_bw
logs=$dir

# PROGRAM, its services, its options: names in the table below.
programs='
ib_write_bw   RC,UC,XRC    inline,many,both,list,sizes
ib_write_lat  RC,UC,XRC    inline,sizes
ib_send_bw    RC,UC,UD,XRC events,inline,many,both,shared,list,sizes
ib_send_lat   RC,UC,UD,XRC events,inline,shared,sizes
ib_read_bw    RC,XRC       events,many,both,list,sizes,deep
ib_read_lat   RC,XRC       events,sizes
ib_atomic_bw  RC,XRC       events,many,both,deep
ib_atomic_lat RC,XRC       events
'
declare -A options=(
  [plain]="" [events]="-e" [inline]="-I 64 -s 64" [many]="-q 8" [both]="-b" [list]="-l 4 -q 4"
  [shared]="--use-srq" [sizes]="-a" [deep]="-o 128"
)
count_of_sizes=5  # messages of each size: the largest of 24 has 8 MiB
! $everything || count_of_sizes=100

# Bytes of a message, or of the largest of those that -a sends.
bytes() {  # PROGRAM SERVICE OPTION
  case $1,$2,$3 in
    ib_atomic*) echo 8 ;;
    *,inline) echo 64 ;;
    *,UD,sizes) echo 4096 ;;
    *,sizes) echo 8388608 ;;
    *_lat,*) echo 2 ;;
    *,UD,*) echo 4096 ;;
    *) echo 65536 ;;
  esac
}
runs=0
patience=300  # perftest itself takes long to prepare 8 MiB
run() {  # PROGRAM SERVICE OPTION
  local size count=100 iterations fixed=
  size=$(bytes "$@")
  [[ $1 != *_lat || $3 == sizes || $3 == inline || $1 == ib_atomic* ]] || fixed="-s 2"
  [ "$2" != UD ] || [ "$3" = sizes ] || [ -n "$fixed" ] || [ "$3" = inline ] || fixed="-s 4096"
  [ "$3" != sizes ] || count=$count_of_sizes
  iterations=$count
  case $3 in many) count=800 ;; list) count=400 ;; esac
  # Regions are shared with the engine or moved by copy threads, in turn.
  if ((runs % 2)); then export ROCEFS_SHARE_REGIONS=0; else unset ROCEFS_SHARE_REGIONS; fi
  pair 0 "$1" -c "$2" -n $iterations -F ${options[$3]} $fixed "${extra[@]}"
  grep -qE "^ $size +$count " "$logs/client" || fail "$*: no $count messages of $size bytes: $(said_both)"
  runs=$((runs + 1))
}
matrix() {
  local program services names service name
  while read -r program services names; do
    [ -n "$program" ] || continue
    IFS=, read -ra services <<<"$services"
    IFS=, read -ra names <<<"$names"
    if $everything; then
      for service in "${services[@]}"; do
        for name in plain "${names[@]}"; do run "$program" "$service" "$name"; done
      done
      continue
    fi
    # The options in turn with the services, but for the sizes, each of which takes many seconds.
    names=("${names[@]/sizes/}")
    for name in "${!names[@]}"; do
      [ -z "${names[name]}" ] || run "$program" "${services[name % ${#services[@]}]}" "${names[name]}"
    done
    [ ${#names[@]} -gt ${#services[@]} ] || run "$program" "${services[-1]}" plain
  done <<<"$programs"
}

extra=()
if [ "${1:-}" = inside ]; then
  . "$lib/two_mounts.bash"
  joined_namespaces
fi
mounted
verbs=("$ROCEFS" enter -m "$mnt" --)
needs_enter
over_uplink() {
  mounted -o uplink=10.9.0.1
  far_mounted -o uplink=10.9.0.2
  run_client() {
    local status=0
    remote timeout -k 5 $patience "$ROCEFS" enter -m "$far" -- "$@" -d mb_0 -p $port 10.9.0.1 >"$logs/client" 2>&1 || status=$?
    return $status
  }
  extra=(-x 1)
  # Nothing holds back UC and UD: what a slow receiver has no room for is lost, and perftest waits for it.
  for where in "$mnt" "$far"; do echo 2G >"$where/kernel/debug/rocefs/links/mb_0-sw_0/rate"; done
  runs=0 begin=$SECONDS
  matrix
  echo "REPORT $runs runs of perftest over an uplink in $((SECONDS - begin)) s"
  unmounted
}

test_case "every service and option of perftest works"
begin=$SECONDS
matrix
$everything || run ib_send_bw UD sizes
echo "REPORT $runs runs of perftest on one mount in $((SECONDS - begin)) s"
[ "${1:-}" != inside ] || over_uplink
