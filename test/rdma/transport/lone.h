// Two queue pairs without devices, links and a fabric: a test hands each the other's packets.
#pragma once

#include <catch2/catch.hpp>
#include <vector>

#include "rdma/transport/qp.h"
#include "rdma/wire/aeth.h"

namespace rocefs::test {

struct LonePort final : QpPort {
  explicit LonePort(QpHost& host) : QpPort(host) {}
  uint32_t mtu() const override { return 4096; }
  uint64_t line_bps() const override { return 100'000'000'000; }
  double receive_ns(uint64_t octets) const override { return static_cast<double>(octets) * 0.08; }
  void add_data(Qp&) override { data = true; }
  void add_acknowledge(Qp&) override { acknowledge = true; }
  void forget(Qp&) override { data = acknowledge = false; }
  void notify(Qp&, CnpCause, const CnpAddress&, TimeNs) override {}

  bool data = false, acknowledge = false;
};

struct LoneHost final : QpHost {
  LoneHost(const char* name, const Shared& shared) : QpHost(name, shared), port(*this) {}
  QpPort* find_port(size_t number) override { return number == 1 ? &port : nullptr; }
  void reap_later() override {}
  void reactions_changed() override {}
  void traffic_classes_changed() override {}
  void packet_gone(const PacketSender&) override {}

  LonePort port;
};

class LoneMemory final : public DirectMemory {
 public:
  explicit LoneMemory(std::vector<uint8_t>& bytes) : DirectMemory(bytes) {}
};

struct LoneEvents final : QpObserver {
  void qp_event(QpEvent event) override { all.push_back(event); }
  std::vector<QpEvent> all;
};

struct LoneEnd {
  LoneEnd(const char* name, const QpHost::Shared& shared, uint32_t number, size_t octets)
      : bytes(octets), host(name, shared), qp(host, number, 1, init()) {
    key = region(kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic);
  }
  QpInit init() {
    QpInit init;
    init.pd = 1;
    init.send_cq = init.receive_cq = &cq;
    init.observer = &events;
    return init;
  }
  // Registers all bytes with these rights; returns the key.
  uint32_t region(uint8_t access) {
    Result<uint32_t> added =
        host.memory().add(std::make_shared<LoneMemory>(bytes), 0, bytes.size(), 1, access);
    REQUIRE(added);
    return *added;
  }
  void connect(const LoneEnd& far, const Ip& from, const Ip& to, QpAttributes attributes) {
    attributes.access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
    attributes.path.local = from;
    attributes.path.remote = to;
    attributes.remote_qpn = far.qp.number();
    REQUIRE(qp.bring_up(attributes));
  }
  // Changes the access flags of the queue pair.
  void allow(uint8_t access) {
    QpAttributes attributes;
    attributes.access = access;
    REQUIRE(qp.modify(QpState::kRts, attributes, kQpAccess));
  }
  // Next packet of requests or responses, as the port would pull it; null if there is none.
  PacketPtr data() { return qp.has_data() ? qp.emit_data(host.scheduler().now()) : nullptr; }
  std::vector<WcStatus> completions() {
    std::vector<WcStatus> all;
    for (Completion one; cq.poll({&one, 1}) == 1;) all.push_back(one.status);
    return all;
  }

  CompletionQueue cq{256};
  LoneEvents events;
  std::vector<uint8_t> bytes;
  LoneHost host;
  Qp qp;
  uint32_t key = 0;
};

struct Lone {
  explicit Lone(uint32_t mtu = 1024, size_t octets = 1 << 16) : Lone(with_mtu(mtu), octets) {}
  explicit Lone(const QpAttributes& attributes, size_t octets = 1 << 16, bool ipv6 = false)
      : near("near", {pool, scheduler, outstanding, stale}, 17, octets),
        far("far", {pool, scheduler, outstanding, stale}, 18, octets) {
    Ip a = mapped_ipv4({10, 0, 0, 1}), b = mapped_ipv4({10, 0, 0, 2});
    if (ipv6) a = {0xfe, 0x80, 1}, b = {0xfe, 0x80, 2};
    near.connect(far, a, b, attributes);
    far.connect(near, b, a, attributes);
  }
  static QpAttributes with_mtu(uint32_t mtu) {
    QpAttributes attributes;
    attributes.path_mtu = mtu;
    return attributes;
  }
  // A request of 8 octets at `at` of the near end, to the same place of the far end.
  SendRequest eight(SendOp op, uint64_t at) const {
    SendRequest request;
    request.op = op;
    request.rkey = far.key;
    request.remote_address = at;
    request.sges = Sge{at, 8, near.key};
    return request;
  }
  // A WRITE of one packet, of `value`, to the place `at`.
  void write(uint8_t value, uint64_t at) {
    near.bytes[at] = value;
    SendRequest request;
    request.op = SendOp::kWrite;
    request.rkey = far.key;
    request.remote_address = at;
    request.sges = Sge{at, 1, near.key};
    REQUIRE(near.qp.post(request));
  }
  // The far end takes a request packet.
  void request(PacketPtr&& packet) {
    wire::Transport headers = packet->transport();
    far.qp.responder().receive(std::move(packet), headers);
  }
  // The far end's acknowledge packet reaches the near end; returns its AETH.
  wire::Aeth answer() {
    REQUIRE(far.host.port.acknowledge);
    PacketPtr packet = far.qp.responder().emit_acknowledge();
    REQUIRE(packet);
    wire::Aeth aeth = packet->transport().aeth();
    psn = packet->transport().psn();
    take(std::move(packet));
    return aeth;
  }
  // The near end takes a packet that answers it.
  void take(PacketPtr&& packet) {
    wire::Transport headers = packet->transport();
    near.qp.requester().receive_response(std::move(packet), headers, scheduler.now());
  }
  static wire::Headers headers_of(const Packet& packet) {
    wire::Parsed parsed;
    auto error = wire::parse_headers(packet.header_bytes(), packet.payload.length, parsed);
    REQUIRE(error == wire::ParseError::kNone);
    return parsed.headers;
  }
  // Rewrites the headers of the packet.
  static void rewrite(Packet& packet, wire::Headers headers) {
    wire::finish_lengths(headers, packet.payload.length);
    packet.header_len = static_cast<uint16_t>(wire::emit(headers, packet.header));
  }

  Scheduler scheduler;
  Outstanding outstanding;
  PacketPool pool{outstanding};
  Counter stale;
  uint32_t psn = 0;  // of the last answer
  LoneEnd near;
  LoneEnd far;
};

}  // namespace rocefs::test
