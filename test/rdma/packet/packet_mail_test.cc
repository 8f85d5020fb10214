// Packets that go from one thread to another, and back to the pool that they came from.
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

TEST_CASE("packet: a payload that it owns does not follow its memory, and is not sealed") {
  Pool pool;
  MemoryTable table;
  std::shared_ptr<LocalMemory> memory = LocalMemory::create(4096);
  REQUIRE(memory);
  std::memset(memory->bytes().data(), 'a', 4096);
  Result<uint32_t> key = table.add(memory, 0x1000, 4096, 1, 0);
  REQUIRE(key);
  auto refer = [&] {
    PacketPtr packet = pool.packet(0);
    const MemoryRegion* region = table.find(*key);
    Payload& payload = packet->payload;
    payload.kind = Payload::Kind::kLocal;
    payload.length = 100;
    payload.table = &table;
    payload.index = MemoryTable::index_of(*key);
    payload.generation = region->generation;
    payload.offset = 7;
    return packet;
  };
  PacketPtr packet = refer(), late = refer();
  REQUIRE(own_payload(*packet));
  std::memset(memory->bytes().data(), 'b', 4096);
  REQUIRE(table.remove(*key));
  CHECK(packet->payload.kind == Payload::Kind::kFrame);
  CHECK(packet->payload.length == 100);
  CHECK_FALSE(packet->sealed);
  CHECK(std::string(reinterpret_cast<const char*>(payload_bytes(*packet)), 100) ==
        std::string(100, 'a'));
  CHECK_FALSE(own_payload(*late));
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
