# Pairs of verbs programs. `verbs` is the command that puts a program where it finds the devices, for
# example `rocefs enter -m MNT --`; `logs` a directory; `patience`, if it is set, how many seconds a
# program may take. Needs fail() and await().
port=$((20000 + ${ROCEFS_TEST_LANE:-0} % 5 * 2000 + $$ % 2000))

listens() {  # on $port
  local hex
  printf -v hex ':%04X' "$port"
  awk -v at="$hex" '$4 == "0A" && substr($2, length($2) - 4) == at {found = 1} END {exit !found}' \
    /proc/net/tcp /proc/net/tcp6
}
listens_or_ended() { listens || ! kill -0 "$server" 2>/dev/null; }
# Starts the server on mb_0, as $server, and waits until it listens, on a port that nobody has.
start_server() {  # TOOL [ARGUMENT…]
  port=$((port + 1))
  while listens; do port=$((port + 1)); done
  timeout -k 5 "${patience:-60}" "${verbs[@]}" "$@" -d mb_0 -p $port >"$logs/server" 2>&1 &
  server=$!
  await listens_or_ended
}
# The client on mb_1; its status.
run_client() {  # TOOL [ARGUMENT…]
  local status=0
  timeout -k 5 "${patience:-60}" "${verbs[@]}" "$@" -d mb_1 -p $port 127.0.0.1 >"$logs/client" 2>&1 || status=$?
  return $status
}
# Errors of the programs stand first: they are not buffered.
said_both() { echo "server: $(tail -n 40 "$logs/server")"; echo "client: $(tail -n 40 "$logs/client")"; }
# Both ends, with these statuses; 124 and more would be those of timeout.
pair() {  # STATUS TOOL [ARGUMENT…]
  local wanted=$1 client=0 served=0
  shift
  start_server "$@"
  run_client "$@" || client=$?
  wait "$server" || served=$?
  [ "$served $client" = "$wanted $wanted" ] || fail "$*: statuses $served and $client"$'\n'"$(said_both)"
}
# A pingpong whose ends both say how many bytes they have seen.
pingpong() {  # BYTES TOOL [ARGUMENT…]
  local bytes=$1 end
  shift
  pair 0 "$@"
  for end in server client; do
    grep -q "^$bytes bytes in " "$logs/$end" || fail "$*: the $end saw other than $bytes bytes"$'\n'"$(said_both)"
  done
}
# A program of perftest, whose client says size and number of its messages; what it sends and counts
# is in order.
perftest() {  # SIZE COUNT TOOL [ARGUMENT…]
  local size=$1 count=$2
  shift 2
  pair 0 "$@" -s "$size" -n "$count"
  grep -qE "^ $size +$count " "$logs/client" || fail "$* -s $size: $(said_both)"
}

# One of each kind: the rest is the same for every user.
some_stock_programs() {
  pingpong 819200 ibv_rc_pingpong -g 1 -n 100 -c
  pingpong 819200 ibv_rc_pingpong -g 1 -n 100 -e
  pingpong 409600 ibv_ud_pingpong -g 1 -n 100 -s 2048
  ! command -v ib_write_bw >/dev/null || perftest 65536 200 ib_write_bw
}
# Each of the stock programs, shortly.
stock_programs() {
  pingpong 819200 ibv_rc_pingpong -g 1 -n 100
  pingpong 819200 ibv_rc_pingpong -g 1 -n 100 -e
  pingpong 819200 ibv_rc_pingpong -g 1 -n 100 -c
  pingpong 41943040 ibv_rc_pingpong -g 1 -n 20 -s 1048576
  pair 1 ibv_rc_pingpong  # no GID, and RoCE knows no LIDs: the server tells the client nothing then
  grep -q "Failed to modify QP to RTR" "$logs/server" || fail "no GID: $(said_both)"
  pingpong 819200 ibv_uc_pingpong -g 1 -n 100
  pingpong 409600 ibv_ud_pingpong -g 1 -n 100 -s 2048
  pingpong 819200 ibv_srq_pingpong -g 1 -n 100
  pair 0 ibv_xsrq_pingpong -g 1 -n 100
  grep -q ^success "$logs/client" || fail "XRC: $(said_both)"
  if ! command -v ib_write_bw >/dev/null; then
    echo "part left out: perftest is missing"
    return
  fi
  local tool size
  for tool in ib_write_bw ib_send_bw ib_read_bw ib_write_lat; do
    for size in 65536 8; do perftest $size 200 $tool; done
  done
}
