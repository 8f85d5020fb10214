# roce_pcap.py FILE: checks every RoCEv2 packet of a capture (Ethernet, IPv4) and counts what it
# carries. Ends with an error for a wrong ICRC, and for a PSN that was sent again with other bytes.
# Prints a line per sender, sorted by its address:
#   ADDRESS PACKETS FIRST MIDDLE LAST ONLY BYTES    of RC SENDs; what was sent again counts once
import socket
import struct
import sys

from roce_icrc import icrc

ROCE, ETHERNET, RC_SENDS = 4791, 1, range(0x00, 0x06)
FIRST, MIDDLE, LAST, ONLY = range(4)
PLACE = {0: FIRST, 1: MIDDLE, 2: LAST, 3: LAST, 4: ONLY, 5: ONLY}


def packets(data):
    magic, _, _, _, _, _, link = struct.unpack("<IHHiIII", data[:24])
    assert magic in (0xA1B2C3D4, 0xA1B23C4D) and link == ETHERNET, "no such capture"
    at = 24
    while at < len(data):
        _, _, captured, original = struct.unpack("<IIII", data[at : at + 16])
        assert captured == original, "a packet is cut off"
        yield data[at + 16 + 14 : at + 16 + captured]
        at += 16 + captured


sent = {}
count = {}
for number, packet in enumerate(packets(open(sys.argv[1], "rb").read()), 1):
    assert packet[0] == 0x45, "packet %d: not IPv4" % number
    length, = struct.unpack("!H", packet[2:4])
    packet = packet[:length]
    port, = struct.unpack("!H", packet[22:24])
    assert port == ROCE, "packet %d: port %d" % (number, port)
    carried, = struct.unpack("<I", packet[-4:])
    assert carried == icrc(packet[:-4]), "packet %d: a wrong ICRC" % number
    sender = socket.inet_ntoa(packet[12:16])
    count[sender] = count.get(sender, 0) + 1
    opcode, pad = packet[28], packet[29] >> 4 & 3
    if opcode not in RC_SENDS:
        continue
    psn = int.from_bytes(packet[37:40], "big")
    header = 40 + (4 if opcode in (3, 5) else 0)
    one = (opcode, packet[header : len(packet) - 4 - pad])
    assert sent.setdefault(sender, {}).setdefault(psn, one) == one, "PSN %d: other bytes" % psn

for sender in sorted(count):
    parts = [0, 0, 0, 0]
    for opcode, _ in sent.get(sender, {}).values():
        parts[PLACE[opcode]] += 1
    print(sender, count[sender], *parts, sum(len(data) for _, data in sent.get(sender, {}).values()))
