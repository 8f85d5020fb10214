// Ownership of packets: who gives them back, and when.
#include <catch2/catch.hpp>
#include <vector>

#include "rdma/packet/packet.h"

using namespace rocefs;

namespace {

struct Gone final : PacketListener {
  std::vector<uint32_t> positions;
  void packet_gone(const PacketSender& sender) override { positions.push_back(sender.position); }
};

struct Owned {
  Outstanding outstanding;
  PacketPool pool{outstanding};
  Gone gone;

  PacketPtr packet(uint32_t position) {
    PacketPtr packet = pool.acquire();
    packet->listener = &gone;
    packet->sender = {17, 1, position};
    return packet;
  }
};

}  // namespace

TEST_CASE("packet: the end of its owner gives it back with its frame and calls its listener") {
  Owned owned;
  Packet* first = nullptr;
  Frame* frame = nullptr;
  {
    PacketPtr packet = owned.packet(3);
    first = packet.get();
    frame = owned.pool.attach_frame(*packet);
    PacketPtr owner = std::move(packet);
    CHECK(owned.outstanding.packets == 1);
    CHECK(owned.gone.positions.empty());
  }
  CHECK(owned.outstanding.packets == 0);
  CHECK(owned.gone.positions == std::vector<uint32_t>{3});
  PacketPtr again = owned.pool.acquire();
  CHECK(again.get() == first);
  CHECK(again->frame == nullptr);
  CHECK(owned.pool.attach_frame(*again) == frame);
}

TEST_CASE("packet: a FIFO owns its packets and gives the rest back, oldest first") {
  Owned owned;
  {
    PacketFifo fifo;
    CHECK(fifo.pop() == nullptr);
    for (uint32_t i = 1; i <= 3; ++i) fifo.push(owned.packet(i));
    fifo.push_front(owned.packet(0));
    for (uint32_t i = 0; i < 2; ++i) {
      PacketPtr oldest = fifo.pop();
      REQUIRE(oldest);
      CHECK(oldest->sender.position == i);
    }
    CHECK(owned.outstanding.packets == 2);
    fifo.push(owned.packet(4));
  }
  CHECK(owned.outstanding.packets == 0);
  CHECK(owned.gone.positions == std::vector<uint32_t>{0, 1, 2, 3, 4});
  PacketFifo fifo;
  fifo.push_front(owned.packet(5));
  fifo.push(owned.packet(6));
  fifo.clear();
  CHECK(fifo.empty());
  fifo.push(owned.packet(7));
  CHECK(fifo.pop()->sender.position == 7);
}

TEST_CASE("packet: no listener is called after the pool was told to forget them") {
  Owned owned;
  PacketPtr packet = owned.packet(1);
  owned.pool.forget_listeners();
  packet.reset();
  CHECK(owned.outstanding.packets == 0);
  CHECK(owned.gone.positions.empty());
}
