# roce_wire.py INTERFACE: looks at the RoCEv2 packets that pass an interface until it is ended by
# SIGTERM. Says `looking` when it has begun. Ends with an error for a wrong ICRC, a fragment, a UDP
# checksum, or if it has missed a packet. Prints at the end, a line per sender and kind of packet:
#   ADDRESS KIND PACKETS PORTS    KIND: an opcode in hex; PORTS: its UDP source ports, sorted
import signal
import socket
import struct
import sys

from roce_icrc import icrc

ROCE, ETH_ALL, SOL_PACKET, STATISTICS = 4791, 3, 263, 6


class Ended(Exception):
    pass


def end(*_):
    raise Ended


def udp_at(packet):
    """Where the UDP header is; nothing if it is none of RoCEv2's."""
    if packet[0] >> 4 == 6 and packet[6] == 17:
        at = 40
    elif packet[0] == 0x45 and packet[9] == 17:
        at = 20
    else:
        return None
    return at if struct.unpack("!H", packet[at + 2 : at + 4])[0] == ROCE else None


def check(packet, seen):
    at = udp_at(packet)
    if at is None:
        return
    source_port, _, length, checksum = struct.unpack("!HHHH", packet[at : at + 8])
    packet = packet[: at + length]
    assert len(packet) == at + length, "a packet is cut off"
    assert checksum == 0, "a UDP checksum"
    if at == 20:
        assert struct.unpack("!H", packet[6:8])[0] & 0x3FFF == 0, "a fragment"
        sender = socket.inet_ntop(socket.AF_INET, packet[12:16])
    else:
        sender = socket.inet_ntop(socket.AF_INET6, packet[8:24])
    carried, = struct.unpack("<I", packet[-4:])
    assert carried == icrc(packet[:-4]), "a wrong ICRC: " + packet.hex()
    count, ports = seen.setdefault((sender, packet[at + 8]), [0, set()])
    seen[sender, packet[at + 8]][0] = count + 1
    ports.add(source_port)


look = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_ALL))
for option in (socket.SO_RCVBUF, 33):  # 33: SO_RCVBUFFORCE, where that is allowed
    try:
        look.setsockopt(socket.SOL_SOCKET, option, 64 << 20)
    except PermissionError:
        pass
look.bind((sys.argv[1], 0))
seen = {}
signal.signal(signal.SIGTERM, end)
print("looking", flush=True)
try:
    while True:
        check(look.recv(65536), seen)
except Ended:
    pass
signal.signal(signal.SIGTERM, signal.SIG_IGN)
look.setblocking(False)
try:
    while True:
        check(look.recv(65536), seen)
except BlockingIOError:
    pass
_, missed = struct.unpack("II", look.getsockopt(SOL_PACKET, STATISTICS, 8))
assert missed == 0, "%d packets were missed" % missed
for (sender, opcode), (count, ports) in sorted(seen.items()):
    print(sender, "%02x" % opcode, count, *sorted(ports))
