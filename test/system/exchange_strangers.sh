#!/bin/bash
# Strangers on another machine, with another uid, cannot affect a mount through the exchange's port.
lib=$(dirname "$0")/lib
. "$lib/two_mounts.bash"
if [ "${1:-}" != inside ]; then
  has_namespaces python3
  exec "${spaces[@]}" "$0" inside
fi
. "$lib/common.bash"
joined_namespaces
printf '%s\n' '[device mb_0]' ip=10.9.0.1 '[uplink up]' '[link mb_0 up]' >"$dir/near.ini"
mounted -o "config=$dir/near.ini"
traffic=$debug/traffic
await grep -q "10.9.0.1 port 18516: listening" "$traffic/exchange"
worker=$(worker_pid)
# stranger: runs a Python program in the other namespace, as nobody where this is root.
stranger() {
  remote python3 -c "
import encodings.idna, os, socket
try:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
except OSError:
    pass  # a user namespace has nobody else
def offer(name='k', op='ud', mtu=256, size=4096, qps='17:1', file=0, count=1):
    return (f'flow 1 name={name} op={op} size={size} count={count} window=64 timeout=14 retry=7 verify=1 file={file} '
            f'seed=1 mtu={mtu} address=0 key=0 bytes=0 qps={qps}\n').encode()
def connect(own=None):
    one = socket.create_connection(('10.9.0.1', 18516), source_address=own)
    one.settimeout(60)
    return one
def line(one):
    text = b''
    while not text.endswith(b'\n'):
        got = one.recv(4096)
        if not got: break
        text += got
    return text.decode()
$(cat)"
}
intact() {
  expect "$worker" "$(worker_pid)" "$1: the worker"
  mountpoint -q "$mnt" || fail "$1: the mount has gone"
}
no_flows() { [ -z "$(find "$traffic" -mindepth 1 -type d)" ]; }

test_case "an invalid offer makes no flow"
stranger <<'PYTHON'
for _ in range(9):
    for mtu in 256, 0, 300:
        one = connect()
        one.sendall(offer(mtu=mtu))
        said = line(one)
        assert said.startswith('fail '), said
PYTHON
intact "an offer that cannot be"
no_flows || fail "a flow that could not be is there"

test_case "strangers that leave between offer and ready leave nothing behind"
stranger <<'PYTHON'
for i in range(100):
    one = connect()
    one.sendall(offer(name=f's{i}', op='write', mtu=4096, qps=','.join(f'{i + 17}:1' for i in range(1000))))
    one.close()
PYTHON
await grep -qx "connections 0" "$traffic/exchange"
intact "going before ready"
for stop in "$traffic"/s*/stop; do
  [ ! -e "$stop" ] || echo 1 >"$stop"  # it was ready before
done
await no_flows
for i in {0..99}; do
  echo "s$i accept mb_0" >"$traffic/start" || fail "s$i is not free"
done
intact "the names that strangers gave"

test_case "a line takes little memory, and an address does not take all connections"
rss() { awk '/^VmRSS/ {print $2}' "/proc/$worker/status"; }
remote ip addr add 10.9.0.3/24 dev far
before=$(rss)
stranger <<PYTHON
held = [connect(('10.9.0.2', 0))]
held[0].sendall(offer(name='r', op='read', mtu=4096, size=1 << 20, count=1 << 20, qps=','.join(f'{i + 17}:1' for i in range(256))))
said = line(held[0])
assert said.startswith('ready '), said
rss = [int(l.split()[1]) for l in open('/proc/$worker/status') if l.startswith('VmRSS')][0]
assert rss - $before < 65536, f'one line has taken {rss - $before} KiB'
said = ''
for i in range(200):
    held.append(connect(('10.9.0.2', 0)))
    held[-1].sendall(offer(name=f'h{i}', op='write'))
    said = line(held[-1])
    if said.startswith('fail '): break
assert 'may have' in said, said
other = connect(('10.9.0.3', 0))
other.sendall(offer(name='other', op='write'))
said = line(other)
assert said.startswith('ready '), said
PYTHON
grep -q "traffic/exchange: 10.9.0.2: refused: 10.9.0.2 may have" "$debug/dmesg" || fail "no refusal in dmesg"
intact "who takes what there is"
