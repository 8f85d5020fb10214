// Header prediction changes nothing but the time: packets of WRITEs, right ones and wrong ones, to
// memory that the core reaches directly, and to memory that it has to call, for which no packet is
// predicted, have the same answers, counters, events and bytes.
#include <catch2/catch.hpp>
#include <cstring>

#include "core/base/rng.h"
#include "test/rdma/transport/lone.h"
#include "test/rdma/transport/seeds.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr uint32_t kMtu = 256;
constexpr uint64_t kReorderWindow = 3;  // packets

// Memory without direct(), which answers at once.
class CalledMemory final : public Memory {
 public:
  explicit CalledMemory(std::vector<uint8_t>& bytes) : bytes_(bytes) {}
  Outcome write(uint64_t offset, std::span<const uint8_t> source, MemoryListener&,
                uint64_t) override {
    std::copy(source.begin(), source.end(), bytes_.begin() + static_cast<long>(offset));
    return Outcome::kDone;
  }
  Outcome read(uint64_t, std::span<uint8_t>, MemoryListener&, uint64_t) override {
    return Outcome::kFailed;
  }
  Outcome atomic(uint64_t, const AtomicOperation&, uint64_t&, MemoryListener&, uint64_t) override {
    return Outcome::kFailed;
  }

 private:
  std::vector<uint8_t>& bytes_;
};

// Memory that answers when it is told to.
class WaitingMemory final : public Memory {
 public:
  Outcome write(uint64_t, std::span<const uint8_t>, MemoryListener& listener,
                uint64_t ticket) override {
    listener_ = &listener;
    ticket_ = ticket;
    return Outcome::kPending;
  }
  Outcome read(uint64_t, std::span<uint8_t>, MemoryListener&, uint64_t) override {
    return Outcome::kFailed;
  }
  Outcome atomic(uint64_t, const AtomicOperation&, uint64_t&, MemoryListener&, uint64_t) override {
    return Outcome::kFailed;
  }
  void answer() { listener_->memory_done(ticket_, true); }

 private:
  MemoryListener* listener_ = nullptr;
  uint64_t ticket_ = 0;
};

struct Request {
  wire::Opcode opcode = wire::Opcode::kRcWriteOnly;
  uint32_t psn = 0;
  bool acknowledge = false;
  uint64_t address = 0;
  bool right_key = true;
  uint32_t announced = 0;  // length in the RETH
  uint16_t length = 0;     // of this payload
  uint8_t fill = 0;
};

// Requests that are mostly the next right one.
class Requests {
 public:
  explicit Requests(uint64_t seed) : rng_(seed, "requests") {}
  bool chance(double probability) { return rng_.chance(probability); }
  // `expected`: the PSN that the responder awaits. If it has not taken the last one, that is sent
  // again.
  Request next(uint32_t expected) {
    if (expected != now_.psn) now_ = before_;
    before_ = now_;
    return following();
  }
  // PSN behind the last one.
  uint32_t sent() const { return now_.psn; }
  // The one behind that, whether or not it was taken.
  Request following() {
    using wire::Opcode;
    Request request;
    auto& [psn, left, address] = now_;
    const bool begins = left == 0;
    if (begins) {
      left = static_cast<uint32_t>(1 + rng_.below(rng_.chance(0.5) ? kMtu : 4 * kMtu));
      address = rng_.below(1 << 15);
    }
    const bool ends = left <= kMtu;
    request.opcode = begins ? ends ? Opcode::kRcWriteOnly : Opcode::kRcWriteFirst
                     : ends ? Opcode::kRcWriteLast
                            : Opcode::kRcWriteMiddle;
    request.length = static_cast<uint16_t>(std::min(left, kMtu));
    request.announced = left;
    request.address = address;
    request.psn = psn++;
    request.acknowledge = ends || rng_.chance(0.3);
    request.fill = static_cast<uint8_t>(rng_.next());
    left -= request.length;
    if (rng_.chance(0.05)) spoil(request);
    return request;
  }

 private:
  void spoil(Request& request) {
    using wire::Opcode;
    constexpr Opcode kOpcodes[] = {Opcode::kRcWriteFirst, Opcode::kRcWriteMiddle,
                                   Opcode::kRcWriteLast, Opcode::kRcWriteOnly,
                                   Opcode::kRcWriteOnlyImm};
    constexpr uint16_t kLengths[] = {0, 1, kMtu - 1, kMtu, kMtu + 4};
    constexpr uint32_t kAnnounced[] = {0, kMtu - 1, kMtu, kMtu + 1, 3 * kMtu, ~0u};
    constexpr uint64_t kFar = uint64_t{1} << 40;
    switch (rng_.below(7)) {
      case 0:
        request.opcode = kOpcodes[rng_.below(std::size(kOpcodes))];
        break;
      case 1:
        request.length = kLengths[rng_.below(std::size(kLengths))];
        if (rng_.chance(0.5)) request.announced = request.length;
        break;
      case 2:
        request.announced = kAnnounced[rng_.below(std::size(kAnnounced))];
        break;
      case 3:
        request.address = rng_.chance(0.5) ? kFar : (1 << 16) - rng_.below(kMtu);
        break;
      case 4:
        request.right_key = false;
        break;
      case 5:
        request.psn += static_cast<uint32_t>(rng_.below(3));
        break;
      case 6:
        request.psn -= static_cast<uint32_t>(rng_.below(3));
        break;
    }
  }

  struct Place {
    uint32_t psn = 0;
    uint32_t left = 0;  // octets of the message
    uint64_t address = 0;
  };
  Rng rng_;
  Place now_, before_;
};

// A far end with one kind of memory.
class End {
 public:
  explicit End(bool direct, bool selective = false) : lone_(kMtu) {
    for (LoneEnd* end : {&lone_.near, &lone_.far}) {
      end->host.selective().apply(std::vector<KnobValue>{uint64_t{selective}, kReorderWindow});
    }
    lone_.write(0, 0);
    headers_ = Lone::headers_of(*lone_.near.data());
    LoneEnd& far = lone_.far;
    if (direct) return;
    Result<uint32_t> added =
        far.host.memory().add(std::make_shared<CalledMemory>(far.bytes), 0, far.bytes.size(), 1,
                              kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic);
    REQUIRE(added);
    far.key = *added;
  }

  void take(const Request& request) {
    PacketPtr packet = lone_.pool.acquire();
    packet->payload.kind = Payload::Kind::kFrame;
    packet->payload.length = request.length;
    std::memset(lone_.pool.attach_frame(*packet)->bytes.data(), request.fill, request.length);
    headers_.bth.opcode = request.opcode;
    headers_.bth.psn = request.psn & 0xffffff;
    headers_.bth.ack_req = request.acknowledge;
    const uint32_t key = request.right_key ? lone_.far.key : lone_.far.key ^ 0x100000;
    headers_.reth = {request.address, key, request.announced};
    Lone::rewrite(*packet, headers_);
    lone_.request(std::move(packet));
  }
  // The acknowledgement that is due: its PSN and AETH; all ones if there is none.
  uint64_t answer() {
    PacketPtr packet = lone_.far.qp.responder().emit_acknowledge();
    if (!packet) return ~uint64_t{0};
    wire::Transport headers = packet->transport();
    return uint64_t{headers.psn()} << 32 | headers.aeth().syndrome << 24 | headers.aeth().msn;
  }
  uint32_t expected() {
    return static_cast<uint32_t>(lone_.far.qp.responder().expected()) & 0xffffff;
  }
  uint64_t writes() { return lone_.far.qp.port().counters().rx_write_requests.get(); }
  size_t refused() { return lone_.far.events.all.size(); }
  uint64_t kept() { return lone_.far.qp.port().counters().sr_ooo_placed.get(); }
  const LoneEnd& far() { return lone_.far; }
  bool refuses_invalid() { return lone_.far.events.all == std::vector{QpEvent::kInvalidRequest}; }
  void post_receive() {
    ReceiveRequest receive;
    receive.sges = Sge{0, 4 * kMtu, lone_.far.key};
    REQUIRE(lone_.far.qp.post(receive));
  }
  // Registers more octets than there are.
  void claim(uint64_t octets) {
    LoneEnd& far = lone_.far;
    Result<uint32_t> added = far.host.memory().add(std::make_shared<LoneMemory>(far.bytes), 0,
                                                   octets, 1, kLocalWrite | kRemoteWrite);
    REQUIRE(added);
    far.key = *added;
  }
  void allow(uint8_t access) { lone_.far.allow(access); }

 private:
  Lone lone_;
  wire::Headers headers_;
};

}  // namespace

TEST_CASE("header prediction: predicted packets do what others do") {
  constexpr uint64_t kRuns = seeds(2000);
  uint64_t taken = 0, refused = 0, kept = 0, compared = 0;
  for_seeds(kRuns, "header prediction: predicted", [&](uint64_t seed) {
    Requests requests(seed);
    const bool selective = seed % 2 == 0;
    End predicted(true, selective), others(false, selective);
    for (int i = 0; i < 60 && predicted.far().events.all.empty(); ++i) {
      if (seed % 10 == 0 && i == 30) {
        for (End* end : {&predicted, &others}) end->allow(kRemoteRead);
      }
      const Request request = requests.next(predicted.expected());
      if (selective && requests.chance(0.05)) {
        const Request overtaking = requests.following();
        for (End* end : {&predicted, &others}) end->take(overtaking);
      }
      for (End* end : {&predicted, &others}) end->take(request);
      INFO("packet " << i);
      if (requests.chance(0.7)) REQUIRE(predicted.answer() == others.answer());
      REQUIRE(predicted.expected() == others.expected());
      REQUIRE(predicted.writes() == others.writes());
    }
    REQUIRE(predicted.far().events.all == others.far().events.all);
    // Packets that are kept may have been placed early, which takes memory that answers directly.
    const bool all_in_order = requests.sent() == predicted.expected() && predicted.refused() == 0;
    if (!selective || all_in_order) REQUIRE(predicted.far().bytes == others.far().bytes);
    compared += selective && all_in_order && predicted.kept() > 0;
    taken += predicted.writes();
    refused += predicted.refused();
    kept += predicted.kept();
  });
  if (replays()) return;
  CHECK(taken > 5 * kRuns);
  CHECK(refused > kRuns / 4);
  CHECK(kept > kRuns / 2);
  CHECK(compared > kRuns / 20);
}

TEST_CASE("header prediction: a WRITE in the middle of a SEND is refused") {
  for (bool direct : {true, false}) {
    End end(direct);
    end.post_receive();
    Request request;
    request.opcode = wire::Opcode::kRcSendFirst;
    request.length = kMtu;
    end.take(request);
    request.opcode = wire::Opcode::kRcWriteMiddle;
    request.psn = 1;
    end.take(request);
    CHECK(end.refuses_invalid());
  }
}

TEST_CASE("header prediction: an empty packet behind the last octet of a WRITE is refused") {
  for (bool direct : {true, false}) {
    End end(direct);
    Request request;
    request.opcode = wire::Opcode::kRcWriteFirst;
    request.length = request.announced = kMtu;
    end.take(request);
    request.opcode = wire::Opcode::kRcWriteLast;
    request.length = 0;
    request.psn = 1;
    end.take(request);
    CHECK(end.refuses_invalid());
  }
}

TEST_CASE("header prediction: a WRITE of more than a message can have is refused") {
  for (uint32_t more : {0u, 1u}) {
    End end(true);
    end.claim(uint64_t{1} << 40);
    Request request;
    request.opcode = wire::Opcode::kRcWriteFirst;
    request.length = kMtu;
    request.announced = static_cast<uint32_t>(kMaxMessage) + more;
    end.take(request);
    CHECK(end.refuses_invalid() == (more > 0));
  }
}

TEST_CASE("header prediction: a WRITE behind a SEND that memory is still taking waits for it") {
  Lone lone(kMtu);
  auto waiting = std::make_shared<WaitingMemory>();
  Result<uint32_t> key = lone.far.host.memory().add(waiting, 0, 64, 1, kLocalWrite);
  REQUIRE(key);
  ReceiveRequest receive;
  receive.sges = Sge{0, 64, *key};
  REQUIRE(lone.far.qp.post(receive));
  SendRequest send;
  send.sges = Sge{0, 8, lone.near.key};
  REQUIRE(lone.near.qp.post(send));
  lone.write(7, 100);
  for (int i = 0; i < 2; ++i) lone.request(lone.near.data());
  CHECK(!lone.far.qp.responder().emit_acknowledge());
  waiting->answer();
  CHECK(aeth::kind_of(lone.answer().syndrome) == aeth::Kind::kAck);
  CHECK(lone.near.completions() == std::vector(2, WcStatus::kSuccess));
  CHECK(lone.far.bytes[100] == 7);
}
