# Reads /sys/class/infiniband as node_exporter's collector does, and ends with an error for the first
# file that does not parse as it must. Prints one line per port.
import os
import re

ROOT = "/sys/class/infiniband"
NUMBERED = re.compile(r"^(\d+): ?(\S+)$")  # "4: ACTIVE"
RATE = re.compile(r"^(\d+(?:\.\d+)?) Gb/sec \(\d+X \w+\)$")


def read(*path):
    with open(os.path.join(ROOT, *path)) as file:
        return file.read().strip()


def fields(pattern, *path):
    found = pattern.match(read(*path))
    assert found, "%s: %r" % ("/".join(path), read(*path))
    return found.groups()


def counters(*path):
    values = {}
    for name in sorted(os.listdir(os.path.join(ROOT, *path))):
        text = read(*path, name)
        assert re.match(r"^\d+$", text), "%s/%s: %r" % ("/".join(path), name, text)
        values[name] = int(text)
    assert values, "/".join(path)
    return values


for device in sorted(os.listdir(ROOT)):
    for name in ("board_id", "fw_ver", "hca_type"):
        assert read(device, name), name
    for port in sorted(os.listdir(os.path.join(ROOT, device, "ports"))):
        base = (device, "ports", port)
        state, _ = fields(NUMBERED, *base, "state")
        physical, _ = fields(NUMBERED, *base, "phys_state")
        rate, = fields(RATE, *base, "rate")
        sent = counters(*base, "counters")["port_xmit_packets"]
        requests = counters(*base, "hw_counters")["rx_write_requests"]
        print(device, port, state, physical, rate, sent, requests)
