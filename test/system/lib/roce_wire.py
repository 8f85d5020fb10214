# roce_wire.py INTERFACE [gso]: looks at the RoCEv2 packets that pass an interface until it is ended by
# SIGTERM. Says `looking` when it has begun. Ends with an error for a wrong ICRC, a fragment, a UDP
# checksum (but with gso, which has them), or if it has missed a packet. Prints at the end, a line per sender and kind of packet:
#   ADDRESS KIND PACKETS PORTS    KIND: an opcode in hex; PORTS: its UDP source ports, sorted
import itertools
import mmap
import select
import signal
import socket
import struct
import sys

from roce_icrc import icrc

ROCE, ETH_ALL, SOL_PACKET, STATISTICS = 4791, 3, 263, 6


ended = False


def end(*_):
    global ended
    ended = True


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
    assert checksum == 0 or "gso" in sys.argv, "a UDP checksum"
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


# A ring that the kernel writes to (packet(7), TPACKET_V2): its size is no socket buffer, which only
# root may make large.
PACKET_RX_RING, PACKET_VERSION, TPACKET_V2, USER = 5, 10, 1, 1
FRAME, BLOCK, BLOCKS = 8192, 1 << 20, 64
look = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_ALL))
look.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
look.setsockopt(SOL_PACKET, PACKET_RX_RING, struct.pack("IIII", BLOCK, BLOCKS, FRAME, BLOCK // FRAME * BLOCKS))
ring = mmap.mmap(look.fileno(), BLOCK * BLOCKS)
look.bind((sys.argv[1], 0))
frames = itertools.cycle(range(0, BLOCK * BLOCKS, FRAME))
at = next(frames)


def take():
    """The next packet; nothing if there is none yet."""
    global at
    status, _, length, _, network = struct.unpack_from("IIIHH", ring, at)
    if not status & USER:
        return None
    packet = ring[at + network : at + network + length]
    struct.pack_into("I", ring, at, 0)
    at = next(frames)
    return packet


seen = {}
signal.signal(signal.SIGTERM, end)
print("looking", flush=True)
while not ended:
    select.select([look], [], [], 0.1)
    while packet := take():
        check(packet, seen)
while packet := take():
    check(packet, seen)
_, missed = struct.unpack("II", look.getsockopt(SOL_PACKET, STATISTICS, 8))
assert missed == 0, "%d packets were missed" % missed
for (sender, opcode), (count, ports) in sorted(seen.items()):
    print(sender, "%02x" % opcode, count, *sorted(ports))
