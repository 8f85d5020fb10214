// Seeded runs beyond the reliable service: UC and UD under faults with late memory; queue pairs
// that are modified, reset and destroyed, and devices that leave, at any moment of their traffic;
// and well-formed packets with hostile contents.
#include <catch2/catch.hpp>

#include "rdma/wire/icrc.h"
#include "test/rdma/transport/seeds.h"
#include "test/rdma/world.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr size_t kArea = 128 * 1024;
constexpr size_t kLargeArea = 512 * 1024;

std::shared_ptr<Memory> some_memory(World& world, Rng& rng, size_t size,
                                    std::vector<SlowMemory*>* slow = nullptr) {
  if (rng.chance(0.5)) return LocalMemory::create(size);
  auto memory = std::make_shared<SlowMemory>(world, size, rng.next());
  if (slow) slow->push_back(memory.get());
  return memory;
}

// Run of UC or UD. Message i comes from its own place and carries its number.
class UnreliableRun {
 public:
  explicit UnreliableRun(uint64_t seed)
      : rng_(seed, "unreliable run"),
        type_(rng_.chance(0.6) ? QpType::kUc : QpType::kUd),
        world_(seed),
        meddler_(world_, world_.link("sw_0-mb_1"), seed, odds()) {
    QpAttributes attributes;
    attributes.path_mtu = 256u << rng_.below(4);
    attributes.send_psn = rng_.chance(0.5) ? 0xffffffu - static_cast<uint32_t>(rng_.below(20))
                                           : static_cast<uint32_t>(rng_.below(1 << 24));
    connection_ = std::make_unique<Connection>(world_, kLargeArea, attributes,
                                               some_memory(world_, rng_, kLargeArea),
                                               some_memory(world_, rng_, kLargeArea), type_);
    fill(bytes_of(*connection_->near_memory).first(kMaxMessages * kSlot), seed);
    connection_->far_cq.set_listener([this] { on_receive(); });
  }

  // Returns how many messages were sent, and how many arrived.
  std::pair<size_t, size_t> run() {
    size_t count = 1 + rng_.below(kMaxMessages);
    for (uint32_t i = 0; i < count; ++i) post(i);
    while (world_.outstanding.any()) REQUIRE(world_.scheduler.run_one(kSecond));
    REQUIRE(Connection::poll(connection_->near_cq).size() == count);
    REQUIRE(connection_->far->state() == QpState::kRts);
    return {count, arrived_};
  }

 private:
  static constexpr size_t kMaxMessages = 30;  // messages
  static constexpr uint64_t kSlot = 4000;
  static constexpr uint64_t kWrites = 256 * 1024;  // place of writes; receives lie before it
  static uint64_t room_at(uint64_t receive) { return receive * (kSlot + kGrhLen + 50) + 30; }
  Meddler::Odds odds() {
    Meddler::Odds odds;
    odds.drop = rng_.chance(0.7) ? rng_.uniform() * 0.1 : 0;
    odds.duplicate = rng_.chance(0.5) ? rng_.uniform() * 0.3 : 0;
    odds.delay = rng_.chance(0.5) ? rng_.uniform() * 0.2 : 0;
    odds.corrupt = rng_.chance(0.2) ? rng_.uniform() * 0.05 : 0;
    return odds;
  }
  uint32_t grh() const { return type_ == QpType::kUd ? kGrhLen : 0; }

  void post(uint32_t i) {
    auto longest = static_cast<uint64_t>(type_ == QpType::kUd ? 1000 : kSlot);
    lengths_.push_back(static_cast<uint32_t>(rng_.chance(0.1) ? 0 : rng_.below(longest)));
    SendRequest request = connection_->write(i, i * kSlot, lengths_[i]);
    bool write = type_ == QpType::kUc && rng_.chance(0.3);
    request.op = write ? SendOp::kWriteImm : SendOp::kSendImm;
    request.immediate = i;
    if (write) request.remote_address += kWrites;
    connection_->post(request);
    for (int copies = 0; copies < (type_ == QpType::kUd ? 2 : 1); ++copies) post_receive();
  }
  // Posts a receive of up to four parts: the routing header is split, too.
  void post_receive() {
    uint64_t id = receives_++;
    auto room = static_cast<uint32_t>(kSlot) + grh();
    ReceiveRequest request = connection_->receive(id, room_at(id), room);
    Sge rest = request.sges.entries()[0];
    request.sges = {};
    for (uint64_t parts = rng_.below(4); parts > 0; --parts) {
      auto length = static_cast<uint32_t>(rng_.below(60));
      request.sges.add({rest.address, length, rest.lkey});
      rest.address += length;
      rest.length -= length;
    }
    request.sges.add(rest);
    connection_->post(request);
  }
  void on_receive() {
    for (const Completion& one : Connection::poll(connection_->far_cq)) {
      REQUIRE(one.status == WcStatus::kSuccess);
      uint32_t i = one.immediate;
      REQUIRE(i < lengths_.size());
      if (type_ == QpType::kUc) REQUIRE((arrived_ == 0 || i > newest_));
      newest_ = i;
      ++arrived_;
      REQUIRE(one.byte_len == lengths_[i] + (one.opcode == WcOpcode::kReceive ? grh() : 0));
      bool write = one.opcode == WcOpcode::kReceiveWriteImm;
      uint64_t at = write ? kWrites + i * kSlot : room_at(one.wr_id) + grh();
      auto near = bytes_of(*connection_->near_memory).subspan(i * kSlot, lengths_[i]);
      auto far = bytes_of(*connection_->far_memory).subspan(at, lengths_[i]);
      REQUIRE(std::equal(near.begin(), near.end(), far.begin()));
    }
  }

  Rng rng_;
  QpType type_;
  World world_;
  Meddler meddler_;
  std::unique_ptr<Connection> connection_;
  std::vector<uint32_t> lengths_;
  uint64_t receives_ = 0;
  uint32_t newest_ = 0;
  size_t arrived_ = 0;
};

// Traffic both ways on a few connections, under every control that a user has.
class LeverRun final : public DeviceClient {
 public:
  explicit LeverRun(uint64_t seed)
      : rng_(seed, "lever run"),
        world_(seed),
        forth_(world_, world_.link("sw_0-mb_1"), seed, {0.01, 0.02, 0.02, 0, 20 * kMicrosecond}),
        back_(world_, world_.link("sw_0-mb_0"), seed, {0.01, 0.02, 0.02, 0, 20 * kMicrosecond}) {
    near_memory_ = some_memory(world_, rng_, kArea, &slow_);
    far_memory_ = some_memory(world_, rng_, kArea, &slow_);
    for (auto& link : links_) make(link);
    for (const char* name : {"mb_0", "mb_1"}) set_sr(world_.device(name), rng_.chance(0.6));
  }

  void run() {
    for (int i = 0; i < 60; ++i) {
      for (auto& link : links_) {
        for (uint64_t posts = rng_.below(5); posts > 0; --posts) post(*link);
      }
      auto time = static_cast<TimeNs>(rng_.below(rng_.chance(0.8) ? 20'000 : 400'000));
      world_.scheduler.run_until(world_.scheduler.now() + time);
      pull_lever();
    }
    for (auto& link : links_) link.reset();
    world_.scheduler.run_until(world_.scheduler.now() + 10 * kMillisecond);
    REQUIRE(world_.outstanding.requests == 0);
    REQUIRE(world_.outstanding.packets == 0);
  }

  void device_removed(Device& device) override {
    for (auto& link : links_) link.reset();
    device.remove_client(*this);
  }

 private:
  void make(std::unique_ptr<Connection>& link) {
    QpAttributes attributes;
    attributes.path_mtu = 256u << rng_.below(3);
    attributes.timeout = 4;
    attributes.min_rnr_timer = 1;
    attributes.send_psn = 0xffffffu - static_cast<uint32_t>(rng_.below(50));
    attributes.retry_count = static_cast<uint8_t>(rng_.below(8));
    attributes.window = static_cast<uint32_t>(1 + rng_.below(40));
    attributes.max_dest_rd_atomic = attributes.max_rd_atomic =
        static_cast<uint8_t>(1 + rng_.below(16));
    link = std::make_unique<Connection>(world_, kArea, attributes, near_memory_, far_memory_,
                                        static_cast<QpType>(rng_.below(3)));
    if (rng_.chance(0.2)) link->far_cq = CompletionQueue(rng_.below(20));
    if (rng_.chance(0.2)) link->near_cq = CompletionQueue(rng_.below(20));
  }
  Qp& some_qp(Connection& link) { return rng_.chance(0.5) ? *link.near : *link.far; }

  void post(Connection& link) {
    constexpr SendOp kOps[] = {SendOp::kSend,     SendOp::kSendImm,    SendOp::kWrite,
                               SendOp::kWriteImm, SendOp::kRead,       SendOp::kCompareSwap,
                               SendOp::kFetchAdd, SendOp::kAtomicWrite};
    auto length = static_cast<uint32_t>(rng_.below(rng_.chance(0.5) ? 300 : 9000));
    uint64_t at = rng_.below(kArea - 10'000) / 8 * 8;
    SendRequest request = link.write(1, at, length);
    request.op = kOps[rng_.below(std::size(kOps))];
    if (request.op >= SendOp::kCompareSwap) request.sges = Sge{link.near_address, 8, link.near_key};
    request.fence = rng_.chance(0.1);
    request.signaled = rng_.chance(0.8);
    if (rng_.chance(0.01)) request.rkey ^= 1;
    (void)link.near->post(request);
    if (rng_.chance(0.7)) (void)link.far->post(link.receive(2, at, 9040));
    Connection::poll(link.near_cq);
    if (rng_.chance(0.5)) Connection::poll(link.far_cq);
  }

  void pull_lever() {
    auto& link = links_[rng_.below(std::size(links_))];
    Qp& qp = some_qp(*link);
    switch (rng_.below(14)) {
      case 11:
        return set_sr(qp.host(), rng_.chance(0.8), rng_.below(40));
      case 12:
        return set_ops(qp.host(), rng_.chance(0.8), 1 + rng_.below(100), rng_.below(6));
      case 0:
        return (void)qp.modify(QpState::kError);
      case 1:
        return (void)qp.modify(QpState::kReset);
      case 2:
        return (void)qp.modify(qp.state() == QpState::kSqd ? QpState::kRts : QpState::kSqd);
      case 3:
        return (void)qp.modify(QpState::kRts);
      case 4: {
        QpAttributes attributes;
        attributes.max_rd_atomic = static_cast<uint8_t>(rng_.below(3));
        attributes.timeout = static_cast<uint8_t>(rng_.below(6));
        (void)qp.modify(QpState::kSqd);
        return (void)qp.modify(
            QpState::kSqd, attributes,
            kQpPort | (qp.type() == QpType::kRc ? kQpMaxRdAtomic | kQpTimeout : 0));
      }
      case 5:  // both ends anew, while memory may still work for the old ones
        for (Qp* one : {link->near, link->far}) {
          (void)one->modify(QpState::kReset);
        }
        return raise(*link);
      case 6: {
        QpAttributes attributes;
        attributes.window = static_cast<uint32_t>(1 + rng_.below(64));
        return (void)qp.modify(qp.state(), attributes, kQpWindow);
      }
      case 7:
        for (SlowMemory* memory : slow_) memory->failing = !memory->failing && rng_.chance(0.3);
        return;
      case 8: {
        Connection& one = *link;
        bool near = rng_.chance(0.5);
        return (void)(near ? one.near_device.memory().remove(one.near_key)
                           : one.far_device.memory().remove(one.far_key));
      }
      case 9: {
        Link& cable = world_.link(rng_.chance(0.5) ? "mb_0-sw_0" : "sw_0-mb_1");
        LinkParameters parameters = cable.parameters();
        parameters.up = !parameters.up;
        return set(cable, parameters);
      }
      case 10: {
        Device& device = world_.device(rng_.chance(0.5) ? "mb_0" : "mb_1");
        if (rng_.chance(0.5)) device.add_client(*this);  // a registered client half of the time
        device_removed(device);
        device.leave();
        world_.scheduler.run_until(world_.scheduler.now() + kMicrosecond);
        device.arrive();
        for (auto& one : links_) make(one);
        return;
      }
      default:
        link.reset();
        return make(link);
    }
  }
  void raise(Connection& link) {
    QpAttributes attributes;
    attributes.path_mtu = 512;
    attributes.timeout = 4;
    attributes.qkey = Connection::kQkey;
    attributes.access = kRemoteWrite | kRemoteRead | kRemoteAtomic;
    Connection::raise(*link.near, *link.far, link.near_device, link.far_device, attributes);
    Connection::raise(*link.far, *link.near, link.far_device, link.near_device, attributes);
  }

  Rng rng_;
  World world_;
  Meddler forth_, back_;
  std::vector<SlowMemory*> slow_;
  std::shared_ptr<Memory> near_memory_, far_memory_;
  std::unique_ptr<Connection> links_[3];
};

// Packet of the service with random contents, from the far end of `to`.
std::vector<uint8_t> hostile_packet(Rng& rng, Qp& to, Qp& from, uint64_t address, uint32_t key) {
  wire::Headers headers = from.headers_to(from.attributes().path, to.number());
  if (to.type() == QpType::kUd) {
    headers = from.headers_to(to.attributes().path, to.number());
    std::swap(headers.v4.src, headers.v4.dst);
  }
  uint64_t base = to.type() == QpType::kRc ? 0 : to.type() == QpType::kUc ? 0x20 : 0x64;
  do {
    headers.bth.opcode =
        static_cast<wire::Opcode>(base + rng.below(to.type() == QpType::kUd ? 2 : 0x20));
  } while (!wire::opcode_info(headers.bth.opcode).valid &&
           !wire::opcode_info(headers.bth.opcode).reserved);
  headers.bth.psn =
      static_cast<uint32_t>(rng.chance(0.8) ? rng.below(30) - 4 : rng.next()) & 0xffffff;
  headers.bth.ack_req = rng.chance(0.5);
  headers.bth.reserved6 = rng.chance(0.7) ? wire::kSrCapable : 0;
  headers.bth.reserved7 = rng.chance(0.3) ? kSelectiveNak : 0;
  uint64_t va = rng.chance(0.7) ? address + rng.below(kArea) / 8 * 8 : rng.next();
  if (rng.chance(0.1)) va = ~uint64_t{0} - rng.below(5000);
  uint32_t rkey = rng.chance(0.9) ? key : static_cast<uint32_t>(rng.next());
  constexpr uint32_t kLengths[] = {0, 1, 255, 256, 257, 512, 9000, 0x7fffffff, 0x80000000, ~0u};
  uint32_t length = rng.chance(0.5) ? kLengths[rng.below(std::size(kLengths))]
                                    : static_cast<uint32_t>(rng.below(5000));
  headers.reth = {va, rkey, length};
  headers.atomic = {va, rkey, rng.next(), rng.next()};
  headers.atomic_ack = {rng.next()};
  headers.ieth = {rkey};
  headers.deth = {rng.chance(0.9) ? Connection::kQkey : 0, 0, from.number()};
  constexpr uint8_t kSyndromes[] = {0x1f, 0x1f, 0x60};
  headers.aeth = {static_cast<uint8_t>(rng.chance(0.7) ? kSyndromes[rng.below(3)] : rng.next()),
                  static_cast<uint32_t>(rng.below(rng.chance(0.5) ? 30 : 1 << 24))};
  bool has_payload = wire::opcode_info(headers.bth.opcode).has_payload;
  constexpr size_t kSizes[] = {0, 1, 255, 256, 257, 1000, 4096};
  std::vector<uint8_t> payload(has_payload ? kSizes[rng.below(std::size(kSizes))] : 0, 0xee);
  wire::finish_lengths(headers, payload.size());
  std::vector<uint8_t> bytes(wire::kMaxHeaderLen), pad(headers.bth.pad_count, 0);
  bytes.resize(wire::emit(headers, bytes));
  uint32_t icrc = wire::icrc(bytes, headers.is_ipv6, payload, pad);
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  bytes.insert(bytes.end(), pad.begin(), pad.end());
  bytes.resize(bytes.size() + wire::kIcrcLen);
  wire::store_icrc(std::span(bytes).last(wire::kIcrcLen), icrc);
  return bytes;
}

void hostile_run(uint64_t seed) {
  Rng rng(seed, "hostile run");
  World world(seed);
  auto near_memory = some_memory(world, rng, kArea), far_memory = some_memory(world, rng, kArea);
  for (const char* name : {"mb_0", "mb_1"}) {
    set_sr(world.device(name), rng.chance(0.6), rng.below(10));
  }
  Connection bystander(world, kArea);
  for (int round = 0; round < 4; ++round) {
    QpAttributes attributes;
    attributes.path_mtu = 256;
    attributes.timeout = static_cast<uint8_t>(4 + rng.below(3));
    auto type = rng.chance(0.7) ? QpType::kRc : rng.chance(0.7) ? QpType::kUc : QpType::kUd;
    Connection victim(world, kArea, attributes, near_memory, far_memory, type);
    for (uint64_t i = 0; i < 6; ++i) {
      victim.post(victim.receive(i, i * 500, 500));
      bool answered = type == QpType::kRc && rng.chance(0.7);
      if (!answered) victim.post(victim.send(i, 0, static_cast<uint32_t>(rng.below(600))));
      if (answered && i % 2) victim.post(victim.fetch_add(i, 0, 1, 0));
      if (answered && i % 2 == 0) {
        victim.post(victim.read(i, 0, static_cast<uint32_t>(rng.below(9000))));
      }
    }
    for (int i = 0; i < 40; ++i) {
      bool near = rng.chance(0.5);
      Qp &to = near ? *victim.near : *victim.far, &from = near ? *victim.far : *victim.near;
      auto bytes = hostile_packet(rng, to, from, near ? victim.near_address : victim.far_address,
                                  near ? victim.near_key : victim.far_key);
      Device& device = near ? victim.near_device : victim.far_device;
      device.port().receive_bytes(bytes, world.scheduler.now());
      auto time = static_cast<TimeNs>(rng.below(3000));
      world.scheduler.run_until(world.scheduler.now() + time);
    }
  }
  world.scheduler.run_until(world.scheduler.now() + kMillisecond);
  REQUIRE(world.outstanding.requests == 0);
  REQUIRE(world.outstanding.packets == 0);
  auto untouched = bytes_of(*bystander.far_memory);
  REQUIRE(std::all_of(untouched.begin(), untouched.end(), [](uint8_t byte) { return byte == 0; }));
  bystander.post(bystander.write(1, 0, 1000));
  REQUIRE(world.run_idle());
  REQUIRE(Connection::poll(bystander.near_cq).at(0).status == WcStatus::kSuccess);
}

}  // namespace

TEST_CASE("chaos: UC and UD deliver messages whole, and UC once and in order") {
  size_t sent = 0, arrived = 0;
  for_seeds(seeds(3000), "chaos: UC and UD", [&](uint64_t seed) {
    auto [posted, received] = UnreliableRun(seed).run();
    sent += posted;
    arrived += received;
  });
  CHECK(arrived > sent / 2);
}

TEST_CASE("chaos: queue pairs and devices may change, fail or go at any moment") {
  for_seeds(seeds(300), "chaos: queue pairs", [](uint64_t seed) { LeverRun(seed).run(); });
}

TEST_CASE("chaos: a peer that lies harms only its own connection") {
  for_seeds(seeds(300), "chaos: a peer", hostile_run);
}
