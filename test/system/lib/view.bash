# Servers of rocefs view and requests to them.
# The server leaves at a signal with threads that wait for a mount.
export TSAN_OPTIONS="${TSAN_OPTIONS:-} report_thread_leaks=0"
view=$(dirname "$ROCEFS")/rocefs-view
cat >"$dir/star.ini" <<'INI'
[clock]
mode = virtual
[topology]
kind = star
hosts = 9
rate = 10G
[knobs]
class/infiniband/*/device/net/*/ecn/roce_rp/enable/0 = 1
INI
needs curl
# serve MOUNT OPTION…: starts the server on a free port -> $url with the token, $site without.
serve() {
  rm -f "$dir/served"
  "$view" -m "$1" --listen 127.0.0.1:0 "${@:2}" >"$dir/served" 2>&1 &
  server=$!
  at_end end_server
  until [ -s "$dir/served" ]; do kill -0 $server 2>/dev/null || fail "$(cat "$dir/served")"; done
  url=$(cut -d' ' -f1 "$dir/served") site=${url%%#*}
  site=${site%/} token=${url#*#}
  port=${site##*:}
}
end_server() { kill "$server" 2>/dev/null || true; }
mount_one() { mounted -o config="$1"; }
get() { curl -sS -m 20 "$@"; }
# store PATH TEXT OPTION…: one store over HTTP.
store() {
  get -X POST --data-binary "$(printf '{"path": "%s", "text": "%s\\n"}' "$1" "$2")" "${@:3}" "$site/api/store"
}
loss=kernel/debug/rocefs/links/h0-sw_0/loss
