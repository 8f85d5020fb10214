# The ICRC of RoCEv2 (IBTA annex A17), independently of what is tested.
import zlib


def icrc(packet):
    """Of a packet from the IP header to the pad: CRC-32 behind eight octets of ones, with ones for
    what may change on the way."""
    masked = bytearray(packet)
    if masked[0] >> 4 == 6:
        udp = 40
        masked[0] |= 0x0F  # traffic class and flow label
        changing = (1, 2, 3, 7)
    else:
        udp = 20
        changing = (1, 8, 10, 11)  # TOS, TTL, checksum
    for at in changing + (udp + 6, udp + 7, udp + 8 + 4):  # UDP checksum; FECN and BECN
        masked[at] = 0xFF
    return zlib.crc32(b"\xff" * 8 + bytes(masked))
