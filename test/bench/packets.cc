// The reliable connection's whole path on one thread: post, requester, link, responder, placement,
// acknowledgement, completion; compared with a ring between a producer and a consumer that copies
// as many bytes. Both write each message's number at its begin and end before sending and compare
// both on arrival; both begin each round with new bytes and compare every byte at its end, outside
// the measured time. Both work in turns: a ring's producer and consumer of half a ring, posting and
// polling of as many events as the engine runs between polls of its clients.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "test/bench/bench.h"
#include "test/bench/benches.h"
#include "test/bench/net.h"

namespace rocefs::bench {
namespace {

constexpr uint64_t kFastest = 10'000'000'000'000;  // bit/s, the most that a link's knob takes
constexpr uint32_t kPacket = 4096;

// Fills with different bytes for every `round`. The size is a multiple of 8.
void fill(std::span<uint8_t> bytes, uint64_t round) {
  uint64_t word = 0x9e3779b97f4a7c15 + round;
  for (; !bytes.empty(); bytes = bytes.subspan(sizeof word)) {
    word = word * 6364136223846793005 + 1;
    std::memcpy(bytes.data(), &word, sizeof word);
  }
}

void stamp(std::span<uint8_t> message, uint64_t number) {
  std::memcpy(message.data(), &number, sizeof number);
  std::memcpy(message.data() + message.size() - sizeof number, &number, sizeof number);
}
void require_stamp(std::span<const uint8_t> message, uint64_t number) {
  uint64_t begin, end;
  std::memcpy(&begin, message.data(), sizeof begin);
  std::memcpy(&end, message.data() + message.size() - sizeof end, sizeof end);
  require(begin == number && end == number, "the numbers differ");
}
void require_equal(std::span<const uint8_t> sent, std::span<const uint8_t> received) {
  require(std::equal(sent.begin(), sent.end(), received.begin()), "the bytes differ");
}

// WRITEs of `length` bytes, over and over memory at both ends.
class Writer {
 public:
  Writer(uint64_t memory, uint32_t length, bool with_switch)
      : net_(star(2, with_switch, kFastest, 0)),
        pair_(net_.fabric, "d0", "d1", {memory, kDepth, 128}),
        length_(length),
        slots_(memory / length) {}

  // Nanoseconds per packet, over `messages`.
  double run(uint64_t messages) {
    fill(pair_.near_bytes(), done_);
    double ns = cpu_ns([&] { drive(messages); });
    if (messages >= slots_) require_equal(pair_.near_bytes(), pair_.far_bytes());
    uint64_t packets = messages * ((length_ + kPacket - 1) / kPacket);
    return ns / static_cast<double>(packets);
  }

 private:
  static constexpr uint32_t kDepth = 128;
  static constexpr int kTurn = 64;  // events between looks at the outside, as the engine takes them

  void drive(uint64_t messages) {
    uint64_t end = done_ + messages;
    uint64_t under_way = std::min<uint64_t>(kDepth, std::max<uint64_t>(1, slots_ / 2));
    while (done_ < end) {
      while (posted_ < end && posted_ - done_ < under_way) post();
      require(net_.scheduler.run_one(kNever - 1), "nothing is left to happen");
      for (int i = 1; i < kTurn && net_.scheduler.run_one(kNever - 1); ++i) {
      }
      while (size_t taken = pair_.completed()) {
        for (size_t i = 0; i < taken; ++i) verify();
      }
    }
  }
  void post() {
    uint64_t offset = posted_ % slots_ * length_;
    stamp(pair_.near_bytes().subspan(offset, length_), posted_);
    pair_.write(offset, length_);
    ++posted_;
  }
  void verify() {
    uint64_t offset = done_ % slots_ * length_;
    require_stamp(pair_.far_bytes().subspan(offset, length_), done_);
    ++done_;
  }

  Net net_;
  Pair pair_;
  const uint32_t length_;
  const uint64_t slots_;
  uint64_t posted_ = 0, done_ = 0;
};

// A single-producer single-consumer ring of 4 KiB slots. Producer and consumer share the thread and
// take turns of half a ring, or of 64 slots.
class Ring {
 public:
  explicit Ring(uint64_t memory) : source_(memory), slots_(memory), count_(memory / kPacket) {}

  double run(uint64_t packets) {
    fill(source_, head_);
    double ns = cpu_ns([&] {
      uint64_t burst = std::min<uint64_t>(64, count_ / 2);
      for (uint64_t left = packets; left > 0; left -= std::min(left, burst)) {
        for (uint64_t i = 0; i < std::min(left, burst); ++i) push();
        for (uint64_t i = 0; i < std::min(left, burst); ++i) pop();
      }
    });
    if (packets >= count_) require_equal(source_, slots_);
    return ns / static_cast<double>(packets);
  }

 private:
  void push() {
    uint64_t at = head_.load(std::memory_order_relaxed);
    require(at - tail_.load(std::memory_order_acquire) < count_, "the ring is full");
    uint64_t offset = at % count_ * kPacket;
    stamp(std::span(source_).subspan(offset, kPacket), at);
    std::memcpy(slots_.data() + offset, source_.data() + offset, kPacket);
    head_.store(at + 1, std::memory_order_release);
  }
  void pop() {
    uint64_t at = tail_.load(std::memory_order_relaxed);
    require(at < head_.load(std::memory_order_acquire), "the ring is empty");
    require_stamp(std::span(slots_).subspan(at % count_ * kPacket, kPacket), at);
    tail_.store(at + 1, std::memory_order_release);
  }

  std::vector<uint8_t> source_, slots_;
  const uint64_t count_;
  alignas(64) std::atomic<uint64_t> head_{0};
  alignas(64) std::atomic<uint64_t> tail_{0};
};

std::string rate(double ns) {
  return fmt::format("{:.2f} M/s", 1000 / ns);
}

}  // namespace

void bench_packets(Table& table) {
  constexpr uint64_t kSmall = 64 << 10, kLarge = 64 << 20;
  constexpr uint64_t kPackets = 30'000;
  Writer small(kSmall, kPacket, false), large(kLarge, kPacket, false);
  Writer short_messages(kSmall, kSmall / 4, false);
  Writer long_messages(kSmall * 4, kSmall, false), switched(kSmall, kPacket, true);
  Writer tiny(kSmall, 64, false);
  Ring small_ring(kSmall), large_ring(kLarge);
  Rounds ns = interleave(
      21, {[&] { return small_ring.run(kPackets); }, [&] { return small.run(kPackets); },
           [&] { return large_ring.run(kPackets); }, [&] { return large.run(kPackets); },
           [&] { return long_messages.run(kPackets / 16); }, [&] { return switched.run(kPackets); },
           [&] { return tiny.run(kPackets); }, [&] { return short_messages.run(kPackets / 4); }});
  auto row = [&](const char* figure, size_t own, size_t ring) {
    return Row{figure, rate(ns[own]), rate(ns[ring]) + " ring + memcpy",
               fmt::format("{:.2f}", ns.ratio(ring, own)), ""};
  };
  auto with_goal = [&](const char* figure, size_t own, size_t ring, double goal) {
    table.push_back(judged(row(figure, own, ring), ns.ratio(ring, own), Bound::kAtLeast, goal, ""));
  };
  with_goal("4 KiB WRITE packets, working set 64 KiB", 1, 0, 0.75);
  with_goal("4 KiB WRITE packets, working set 64 MiB", 3, 2, 0.6);
  table.push_back(row("  in messages of 16 KiB, working set 64 KiB", 7, 0));
  table.push_back(row("  in messages of 64 KiB, working set 256 KiB", 4, 0));
  with_goal("  through a switch, working set 64 KiB", 5, 0, 0.65);
  table.push_back({"64 B WRITE messages", rate(ns[6]), "", "", ""});
}

}  // namespace rocefs::bench
