"""Threads that wait for events of librdmacm while another thread closes their channel.

usage: cm_closes.py ADDRESS TURNS

A file of the kernel stays while a thread waits in it; a thread that comes later gets EBADF. Prints any
other error, and ends with status 1.
"""

import ctypes
import errno
import os
import socket
import struct
import sys
import threading

PS_TCP = 0x106
cm = ctypes.CDLL("librdmacm.so.1", use_errno=True)
cm.rdma_create_event_channel.restype = ctypes.c_void_p


def require(holds, what):
    if not holds:
        raise OSError(ctypes.get_errno(), what)


def get_events(channel, begun, errors):
    event = ctypes.c_void_p()
    begun.set()
    while cm.rdma_get_cm_event(channel, ctypes.byref(event)) == 0:
        cm.rdma_ack_cm_event(event)
    errors.append(ctypes.get_errno())


def turn(to, spin, errors):
    channel = ctypes.c_void_p(cm.rdma_create_event_channel())
    require(channel.value, "rdma_create_event_channel")
    id = ctypes.c_void_p()
    require(cm.rdma_create_id(channel, ctypes.byref(id), None, PS_TCP) == 0, "rdma_create_id")
    begun = threading.Event()
    threading.Thread(target=get_events, args=(channel, begun, errors), daemon=True).start()
    begun.wait()
    # The address is resolved while the id is destroyed: the event may come, be taken back, or neither.
    require(cm.rdma_resolve_addr(id, None, to, 2000) == 0, "rdma_resolve_addr")
    for _ in range(spin):
        pass
    require(cm.rdma_destroy_id(id) == 0, "rdma_destroy_id")
    cm.rdma_destroy_event_channel(channel)


def main():
    to = struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton(sys.argv[1]))
    errors = []
    for number in range(int(sys.argv[2])):
        turn(to, number * 20 % 2000, errors)
    wrong = {errno.errorcode[error] for error in errors if error != errno.EBADF}
    print("threads of closed channels got", *(wrong or {"no error"}), flush=True)
    os._exit(1 if wrong else 0)  # without the threads, which wait for ever


main()
