// Requesters and responders without a device, links and a fabric: what they say to the packets that
// a test hands them.
#include <catch2/catch.hpp>
#include <deque>
#include <vector>

#include "rdma/transport/qp.h"
#include "rdma/wire/aeth.h"

using namespace rocefs;

namespace {

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
  void packet_gone(uint32_t, uint64_t, uint64_t) override {}

  LonePort port;
};

class Bytes final : public DirectMemory {
 public:
  explicit Bytes(std::vector<uint8_t>& bytes) : DirectMemory(bytes) {}
};

struct End {
  End(const char* name, const QpHost::Shared& shared, uint32_t number)
      : host(name, shared), qp(host, number, 1, init()) {
    Result<uint32_t> added = host.memory().add(std::make_shared<Bytes>(bytes), 0, bytes.size(), 1,
                                               kLocalWrite | kRemoteWrite);
    REQUIRE(added);
    key = *added;
  }
  QpInit init() {
    QpInit init;
    init.pd = 1;
    init.send_cq = init.receive_cq = &cq;
    return init;
  }
  void connect(const End& far, const Ip& from, const Ip& to) {
    QpAttributes attributes;
    attributes.access = kRemoteWrite;
    attributes.path.local = from;
    attributes.path.remote = to;
    attributes.remote_qpn = far.qp.number();
    REQUIRE(qp.bring_up(attributes));
  }
  // Its next packet of requests or responses, as its port would pull it; null if it has none.
  Packet* data() {
    Packet* packet = qp.has_data() ? qp.emit_data(host.scheduler().now()) : nullptr;
    return packet;
  }
  std::vector<WcStatus> completions() {
    std::vector<WcStatus> all;
    for (Completion one; cq.poll({&one, 1}) == 1;) all.push_back(one.status);
    return all;
  }

  CompletionQueue cq{64};
  std::vector<uint8_t> bytes = std::vector<uint8_t>(1 << 16);
  LoneHost host;
  Qp qp;
  uint32_t key = 0;
};

struct Lone {
  Lone() {
    const Ip a = mapped_ipv4({10, 0, 0, 1}), b = mapped_ipv4({10, 0, 0, 2});
    near.connect(far, a, b);
    far.connect(near, b, a);
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
  void request(Packet* packet) { far.qp.responder().receive(packet, packet->transport()); }
  // The far end's acknowledge packet reaches the near end; what its AETH said.
  wire::Aeth answer() {
    REQUIRE(far.host.port.acknowledge);
    Packet* packet = far.qp.responder().emit_acknowledge();
    REQUIRE(packet);
    wire::Aeth aeth = packet->transport().aeth();
    psn = packet->transport().psn();
    near.qp.requester().receive_response(packet, packet->transport(), scheduler.now());
    return aeth;
  }
  void lose(Packet* packet) { pool.release(packet); }

  Scheduler scheduler;
  Outstanding outstanding;
  PacketPool pool{outstanding};
  Counter stale;
  uint32_t psn = 0;  // of the last answer
  End near{"near", {pool, scheduler, outstanding, stale}, 17};
  End far{"far", {pool, scheduler, outstanding, stale}, 18};
};

}  // namespace

// IBTA 9.7.5.2.8: all that follows the packet that is missing is sent again.
TEST_CASE(
    "lone requester: a NAK for a sequence error takes it back to the packet that is missing") {
  Lone lone;
  for (uint8_t i = 0; i < 4; ++i) lone.write(static_cast<uint8_t>(10 + i), i);
  std::vector<Packet*> sent;
  for (int i = 0; i < 4; ++i) sent.push_back(lone.near.data());
  CHECK(lone.near.data() == nullptr);
  lone.request(sent[0]);
  lone.lose(sent[1]);
  lone.request(sent[2]);
  CHECK(lone.answer().syndrome == aeth::kNakSequence);
  CHECK(lone.psn == 1);
  CHECK(lone.near.completions() == std::vector<WcStatus>{WcStatus::kSuccess});
  lone.lose(sent[3]);
  for (uint32_t psn = 1; psn < 4; ++psn) {
    Packet* again = lone.near.data();
    REQUIRE(again);
    CHECK(again->transport().psn() == psn);
    lone.request(again);
  }
  CHECK(lone.answer().syndrome == aeth::kAckUnlimited);
  CHECK(lone.near.completions() == std::vector<WcStatus>(3, WcStatus::kSuccess));
  CHECK(std::equal(lone.far.bytes.begin(), lone.far.bytes.begin() + 4, lone.near.bytes.begin()));
  CHECK(lone.near.host.port.counters().packet_seq_err.get() == 1);
  CHECK(lone.far.host.port.counters().out_of_sequence.get() == 1);
}

// IBTA 9.7.5.1.3: its last acknowledgement may have been lost.
TEST_CASE("lone responder: a duplicate WRITE is acknowledged again, and not placed again") {
  Lone lone;
  lone.write(1, 0);
  Packet* first = lone.near.data();
  Packet* duplicate = copy_of(lone.pool, *first);
  lone.request(first);
  CHECK(lone.far.bytes[0] == 1);
  CHECK(lone.answer().syndrome == aeth::kAckUnlimited);
  lone.far.bytes[0] = 7;
  lone.request(duplicate);
  CHECK(lone.far.bytes[0] == 7);
  CHECK(lone.answer().syndrome == aeth::kAckUnlimited);
  CHECK(lone.psn == 0);
  CHECK(lone.far.host.port.counters().duplicate_request.get() == 1);
  CHECK(lone.near.completions() == std::vector<WcStatus>{WcStatus::kSuccess});
}

TEST_CASE("lone requester: without an answer it sends again, and gives up after its retries") {
  Lone lone;
  lone.write(1, 0);
  int sent = 0;
  do {
    while (Packet* packet = lone.near.data()) {
      lone.lose(packet);
      ++sent;
    }
  } while (lone.scheduler.run_one(60 * kSecond));
  CHECK(sent == 1 + 7);  // QpAttributes::retry_count
  CHECK(lone.near.completions() == std::vector<WcStatus>{WcStatus::kRetryExceeded});
  CHECK(lone.near.qp.state() == QpState::kError);
  CHECK(lone.near.host.port.counters().local_ack_timeout_err.get() == 8);
}
