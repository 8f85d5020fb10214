// A sender of UDP datagrams with its I/O, and packets for it.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/loop/engine.h"
#include "rdma/cc/cnp.h"
#include "rdma/uplink/udp_sender.h"
#include "rdma/wire/bytes.h"

namespace rocefs::test {

struct Sending {
  std::unique_ptr<CoreIo> io = std::move(choose_io(*wanted_io(), 256)->io);
  Outstanding outstanding;
  PacketPool pool{outstanding};
  Scheduler scheduler;
  UplinkCounters counters;
  Counter stale;
  std::vector<bool> told;
  std::vector<std::string> warnings;
  std::unique_ptr<UdpSender> sender;

  Sending() {
    io->enable();
    sender = std::make_unique<UdpSender>(
        UdpSender::Parts{*io, scheduler, counters, stale, [this] { return scheduler.now(); },
                         [this](bool full) {
                           if (told.empty() || told.back() != full) told.push_back(full);
                         },
                         [this](const std::string& line) { warnings.push_back(line); }});
  }
  // An RC WRITE Middle made of a CNP.
  PacketPtr packet(const CnpAddress& address, uint16_t payload) {
    PacketPtr packet = make_cnp(pool, address);
    size_t grown = packet->wire_length();
    packet->payload.length = payload;
    if (payload > 0) packet->payload.kind = Payload::Kind::kFrame;
    std::fill_n(pool.attach_frame(*packet)->bytes.begin(), payload, uint8_t{1});
    grown = packet->wire_length() - grown;
    uint8_t* header = packet->header.data();
    header[28] = 0x07;
    wire::store16(header + 2, static_cast<uint16_t>(wire::load16(header + 2) + grown));
    wire::store16(header + 24, static_cast<uint16_t>(wire::load16(header + 24) + grown));
    return packet;
  }
  void run() {
    scheduler.run_until(scheduler.now());
    io->poll();
  }
};

inline CnpAddress address_of(const Ip& from, const Ip& to, uint16_t port) {
  CnpAddress address;
  address.from = from;
  address.to = to;
  address.source_port = port;
  address.traffic_class = 0xc2;
  return address;
}

}  // namespace rocefs::test
