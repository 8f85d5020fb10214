// Packets that go from one thread to another, and back to the pool that they came from.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "core/loop/engine.h"
#include "rdma/packet/memory.h"
#include "rdma/packet/packet.h"

using namespace rocefs;

namespace {

struct Pool {
  Outstanding outstanding;
  PacketPool pool{outstanding};
  PacketPtr packet(TimeNs number) {
    PacketPtr made = pool.acquire();
    made->arrival = number;
    return made;
  }
};

struct Gone final : PacketListener {
  std::vector<uint32_t> positions;
  void packet_gone(const PacketSender& sender) override { positions.push_back(sender.position); }
};

// The second of two threads that run parts of a fabric.
void elsewhere(PacketPool& own, auto work) {
  std::thread([&] {
    PacketPool::use_here(&own);
    work();
  }).join();
}

}  // namespace

TEST_CASE("packet mail: first in, first out, whatever was taken meanwhile") {
  Pool pool;
  PacketMail mail;
  CHECK(mail.empty());
  CHECK(mail.pop() == nullptr);
  for (TimeNs i = 0; i < 3; ++i) mail.push(pool.packet(i));
  CHECK(mail.pop()->arrival == 0);
  for (TimeNs i = 3; i < 6; ++i) mail.push(pool.packet(i));
  for (TimeNs i = 1; i < 6; ++i) {
    CHECK_FALSE(mail.empty());
    CHECK(mail.pop()->arrival == i);
  }
  CHECK(mail.empty());
  mail.push(pool.packet(6));
}

TEST_CASE("packet mail: another thread takes all in order, and the pool makes few packets") {
  constexpr TimeNs kCount = 200'000, kUnderWay = 100;
  Pool sender, receiver;
  PacketMail mail;
  std::atomic<TimeNs> taken{0};
  TimeNs disorder = 0;
  std::thread other([&] {
    PacketPool::use_here(&receiver.pool);
    for (TimeNs next = 0; next < kCount;) {
      PacketPtr packet = mail.pop();
      if (!packet) {
        std::this_thread::yield();
        continue;
      }
      disorder += packet->arrival != next++;
      packet.reset();
      taken.store(next);
    }
  });
  PacketPool::use_here(&sender.pool);
  std::set<Packet*> packets;
  for (TimeNs i = 0; i < kCount; ++i) {
    while (i - taken.load() >= kUnderWay) std::this_thread::yield();
    PacketPtr packet = sender.packet(i);
    packets.insert(packet.get());
    mail.push(std::move(packet));
  }
  other.join();
  PacketPool::use_here(nullptr);
  CHECK(disorder == 0);
  CHECK(packets.size() <= kUnderWay + 1);
  CHECK(sender.outstanding.packets + receiver.outstanding.packets == 0);
}

TEST_CASE("packet: given back by another core, it tells its listener when its own core settles") {
  PollLoop loop;
  auto engine = Engine::create({}, loop);
  REQUIRE(engine);
  Pool own, other;
  own.pool.set_core((*engine)->core(0));
  Gone gone;
  PacketPool::use_here(&own.pool);
  PacketFifo packets;
  for (uint32_t i = 0; i < 3; ++i) {
    PacketPtr packet = own.packet(i);
    packet->listener = &gone;
    packet->sender.position = i;
    packets.push(std::move(packet));
  }
  CHECK(own.pool.settled());
  elsewhere(other.pool, [&] { packets.clear(); });
  CHECK(gone.positions.empty());
  CHECK_FALSE(own.pool.settled());
  own.pool.settle();
  CHECK(gone.positions == std::vector<uint32_t>{0, 1, 2});
  CHECK(own.pool.settled());
  CHECK(own.outstanding.packets + other.outstanding.packets == 0);
  PacketPool::use_here(nullptr);
}

// A region of memory that holds 'a', and packets that refer to it.
struct Lender {
  PollLoop loop;
  Result<std::unique_ptr<Engine>> engine = Engine::create({}, loop);
  MemoryTable table;
  uint32_t key = 0;
  std::weak_ptr<Memory> memory;

  explicit Lender(Pool& pool) : Lender(pool, LocalMemory::create(4096)) {
    std::memset(table.find(key)->direct, 'a', 4096);
  }
  Lender(Pool& pool, std::shared_ptr<Memory> made) : memory(made) {
    REQUIRE(engine);
    pool.pool.set_core((*engine)->core(0));
    Result<uint32_t> added = table.add(std::move(made), 0x1000, 4096, 1, 0);
    REQUIRE(added);
    key = *added;
  }
  PacketPtr refer(Pool& pool) {
    PacketPtr packet = pool.packet(0);
    packet->header_len = wire::kIpv4Len + wire::kUdpLen + wire::kBthLen;
    packet->header.fill(0);
    packet->header[0] = 0x45;
    Payload& payload = packet->payload;
    payload.kind = Payload::Kind::kLocal;
    payload.length = 100;
    payload.table = &table;
    payload.slot = {MemoryTable::index_of(key), table.find(key)->generation};
    payload.offset = 7;
    return packet;
  }
};

bool holds(const Packet& packet, char octet) {
  return std::string(reinterpret_cast<const char*>(payload_bytes(packet)), 100) ==
         std::string(100, octet);
}

TEST_CASE("packet: lent memory stays until all packets are back, whatever becomes of its region") {
  Pool own, other;
  Lender lender(own);
  PacketPool::use_here(&own.pool);
  PacketPtr first = lender.refer(own), second = lender.refer(own), late = lender.refer(own);
  REQUIRE(share_payload(*first));
  REQUIRE(share_payload(*second));
  REQUIRE(share_payload(*second));  // on its way through a third core: no second loan
  REQUIRE(lender.table.remove(lender.key));
  CHECK_FALSE(share_payload(*late));
  elsewhere(other.pool, [&] {
    CHECK(holds(*first, 'a'));
    PacketPtr copy = copy_of(*first);
    CHECK(holds(*copy, 'a'));
    copy.reset();
    REQUIRE(materialize(*second));
    first.reset();
    CHECK(holds(*second, 'a'));
  });
  CHECK_FALSE(own.pool.settled());
  own.pool.settle();
  CHECK_FALSE(lender.memory.expired());
  elsewhere(other.pool, [&] { second.reset(); });
  CHECK_FALSE(lender.memory.expired());
  own.pool.settle();
  CHECK(lender.memory.expired());
  late.reset();
  PacketPool::use_here(nullptr);
  CHECK(own.outstanding.packets + other.outstanding.packets == 0);
}

// Memory of a program.
class ProgramMemory final : public DirectMemory {
 public:
  explicit ProgramMemory(std::span<uint8_t> bytes) : DirectMemory(bytes) {}
};

TEST_CASE("packet: bytes of a program are copied, and not sealed") {
  Pool own;
  std::vector<uint8_t> bytes(4096, 'a');
  Lender lender(own, std::make_shared<ProgramMemory>(bytes));
  PacketPtr packet = lender.refer(own), late = lender.refer(own);
  REQUIRE(share_payload(*packet));
  std::ranges::fill(bytes, 'b');
  REQUIRE(lender.table.remove(lender.key));
  CHECK(lender.memory.expired());
  CHECK(packet->payload.kind == Payload::Kind::kFrame);
  CHECK(packet->payload.length == 100);
  CHECK_FALSE(packet->sealed);
  CHECK(holds(*packet, 'a'));
  CHECK_FALSE(share_payload(*late));
}

TEST_CASE("packet: blank memory is lent without a loan to end") {
  Pool own;
  Lender lender(own, LocalMemory::create_blank(4096));
  PacketPtr packet = lender.refer(own);
  REQUIRE(share_payload(*packet));
  CHECK_FALSE(packet->payload.owes);
  REQUIRE(lender.table.remove(lender.key));
  CHECK(lender.memory.expired());
  CHECK(holds(*packet, '\0'));
}

TEST_CASE("packet: a loan ends where its packet does, and with the pool") {
  Pool other;
  auto own = std::make_unique<Pool>();
  Lender lender(*own);
  PacketPtr here = lender.refer(*own), there = lender.refer(*own);
  REQUIRE(share_payload(*here));
  REQUIRE(lender.table.remove(lender.key));
  SECTION("given back by its own core") {
    here.reset();
    CHECK(lender.memory.expired());
  }
  SECTION("not taken back any more") {
    elsewhere(other.pool, [&] { here.reset(); });
    CHECK_FALSE(lender.memory.expired());
  }
  there.reset();
  own.reset();
  CHECK(lender.memory.expired());
}

TEST_CASE("packet pool: a frame that a packet gets in another part returns to that part's pool") {
  constexpr size_t kSlab = 64;  // frames that a pool makes at once
  Pool owner, other;
  std::set<Frame*> frames;
  for (TimeNs i = 0; i < 300; ++i) {
    PacketPtr packet = owner.packet(i);
    elsewhere(other.pool, [&] {
      frames.insert(owner.pool.attach_frame(*packet));
      packet.reset();
    });
  }
  CHECK(frames.size() <= kSlab);
}
