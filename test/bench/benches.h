// All programs of measurements, in the order of the table.
#pragma once

#include "test/bench/bench.h"

namespace rocefs::bench {

void bench_files(Table& table);
void bench_packets(Table& table);
void bench_cores(Table& table);
void bench_hops(Table& table);
void bench_scale(Table& table);
void bench_memory(Table& table);
void bench_reads(Table& table);
void bench_wire(Table& table);
void bench_uplink(Table& table);
void bench_verbs(Table& table);
void bench_pcc(Table& table);
void bench_hosts(Table& table);
void bench_view(Table& table);

inline constexpr Bench kBenches[] = {
    {"files", "open, read to the end and close, against real sysfs", bench_files},
    {"packets", "the reliable connection's path, against a ring with memcpy", bench_packets},
    {"cores", "two pairs of NICs on two packet cores, against one", bench_cores},
    {"hops", "packets delivered by links per second of CPU", bench_hops},
    {"scale", "what 1,024 hosts cost a packet, against 32", bench_scale},
    {"memory", "memory per idle queue pair", bench_memory},
    {"reads", "what readers of the files do to messages", bench_reads},
    {"wire", "ICRC, parsing and emitting", bench_wire},
    {"uplink", "two engines on two joined networks, against bare datagrams", bench_uplink},
    {"verbs", "stock programs, against memory moved between processes", bench_verbs},
    {"pcc", "decisions of an algorithm, against a bare loop over as many windows", bench_pcc},
    {"hosts", "TCP and ping between hosts, against frames copied between TAPs", bench_hosts},
    {"view", "what a page that listens costs, and costs a flow", bench_view},
};

}  // namespace rocefs::bench
