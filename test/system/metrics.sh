#!/bin/bash
# /metrics of rocefs view: the mount's figures in Prometheus' format; what Prometheus itself makes of them, and of
# node_exporter's, and the rules and the dashboard of tools/grafana.
. "$(dirname "$0")/lib/common.bash"
# The server leaves at a signal with threads that wait for a mount.
export TSAN_OPTIONS="${TSAN_OPTIONS:-} report_thread_leaks=0"
needs curl
grafana=$(realpath "$(dirname "$0")/../../tools/grafana")
view=$(dirname "$ROCEFS")/rocefs-view
printf '[topology]\nkind = star\nhosts = 3\nrate = 10G\n' >"$dir/star.ini"
end_server() { kill "$server" 2>/dev/null || true; }
serve() {
  mounted -o config="$dir/star.ini"
  rm -f "$dir/served"
  "$view" -m "$mnt" --listen 127.0.0.1:0 >"$dir/served" 2>&1 &
  server=$!
  at_end end_server
  until [ -s "$dir/served" ]; do kill -0 $server 2>/dev/null || fail "$(cat "$dir/served")"; done
  site=$(sed 's|/#.*||' "$dir/served")
}
metric() { awk -v name="$1" '$1 == name {print $2}' "$dir/metrics"; }
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

test_case "figures are those of the files"
serve
echo 'f write h1 h0 count=100' >"$debug/traffic/start"
await state_is f "done"
echo down >"$debug/links/h2-sw_0/state"
curl -sS "$site/metrics" >"$dir/metrics"
for file in bytes packets lost; do
  expect "$(cat "$debug/links/h1-sw_0/$file")" "$(metric "rocefs_link_${file}_total{link=\"h1-sw_0\"}")" "$file"
done
expect 1250000000 "$(metric 'rocefs_link_rate_bytes_per_second{link="h1-sw_0"}' | awk '{printf "%d", $1}')" "10 Gb/s"
expect 1 "$(metric 'rocefs_link_up{link="h1-sw_0"}')" "a link that is up"
expect 0 "$(metric 'rocefs_link_up{link="h2-sw_0"}')" "a link that is down"
expect 12582912 "$(metric 'rocefs_switch_buffer_size_bytes{switch="sw_0"}' | awk '{printf "%d", $1}')" "memory"
expect "$(cat "$debug/fabric/sw_0/ports/1/queue/0/peak")" "$(metric 'rocefs_queue_peak_bytes{switch="sw_0",port="1",priority="0"}')" "a queue"
expect "" "$(grep 'rocefs_queue.*priority="5"' "$dir/metrics")" "queues that were never used"
awk '/^# TYPE/ {if (seen[$3]++) exit 1}' "$dir/metrics" || fail "a metric in two parts"

test_case "promtool accepts the figures, the rules, and the expressions of the dashboard"
needs promtool
promtool check metrics <"$dir/metrics" >"$dir/said" 2>&1 || fail "$(cat "$dir/said")"
promtool check rules "$grafana/rules.yml" >"$dir/said" 2>&1 || fail "$(cat "$dir/said")"
python3 - "$grafana/rocefs.json" >"$dir/expressions.yml" <<'PY'
import json, sys
panels = json.load(open(sys.argv[1], encoding="utf-8"))["panels"]
print("groups:\n  - name: dashboard\n    rules:")
for number, target in enumerate(target for panel in panels for target in panel["targets"]):
    expression = target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*").replace("$node", ".*")
    print(f"      - record: expression:{number}\n        expr: {json.dumps(expression)}")
assert len({tuple(sorted(panel["gridPos"].items())) for panel in panels}) == len(panels)
PY
promtool check rules "$dir/expressions.yml" >"$dir/said" 2>&1 || fail "$(cat "$dir/said")"
# Each name is one that is there.
for name in $(grep -ohE 'rocefs_[a-z_]+' "$grafana"/{rocefs.json,rules.yml} | sort -u); do
  grep -q "^# TYPE $name " "$dir/metrics" || fail "no $name"
done

test_case "Prometheus scrapes the page's server and node_exporter, and answers a query of both; a rule fires"
needs prometheus prometheus-node-exporter
serve
port=$(free_port)
node=$(free_port)
prometheus-node-exporter --web.listen-address="127.0.0.1:$node" --path.sysfs="$mnt" --collector.disable-defaults --collector.infiniband >"$dir/node.log" 2>&1 &
at_end kill $!
sed "s/127.0.0.1:8470/${site#http://}/; s/127.0.0.1:9100/127.0.0.1:$node/; s/5s/1s/; s|rules.yml|$grafana/rules.yml|; s/^global:/&\n  evaluation_interval: 1s/" \
  "$grafana/prometheus.yml" >"$dir/prometheus.yml"
promtool check config "$dir/prometheus.yml" >"$dir/said" 2>&1 || fail "$(cat "$dir/said")"
prometheus --config.file="$dir/prometheus.yml" --storage.tsdb.path="$dir/tsdb" --web.listen-address="127.0.0.1:$port" >"$dir/prometheus.log" 2>&1 &
at_end kill $!
query() {
  curl -sSG "http://127.0.0.1:$port/api/v1/query" --data-urlencode "query=$1" 2>/dev/null |
    python3 -c 'import json, sys; print(*[one["value"][1] for one in json.load(sys.stdin)["data"]["result"]])' 2>/dev/null
}
says() { [ "$(query "$1")" = "$2" ]; }
echo 'f write h1 h0 count=500' >"$debug/traffic/start"
await state_is f "done"
await says 'rocefs_link_bytes_total{link="h1-sw_0"}' "$(cat "$debug/links/h1-sw_0/bytes")"
# The files count words of four octets.
await says 'node_infiniband_port_data_transmitted_bytes_total{device="h1"}' $(($(cat "$ib/h1/ports/1/counters/port_xmit_data") * 4))
echo down >"$debug/links/h2-sw_0/state"
await says 'count(ALERTS{alertname="RocefsLinkDown",link="h2-sw_0"})' 1
