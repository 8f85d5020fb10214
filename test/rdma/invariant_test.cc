// Thousands of seeded runs under loss, duplication, reordering and damage: every received byte is
// the sent one, no work request completes before its last byte is placed, completions come in order
// and exactly once, and nothing beside the targets is touched.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>

#include "test/rdma/world.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// One run, all of whose choices come from the seed.
class RandomRun {
 public:
  explicit RandomRun(uint64_t seed)
      : rng_(seed, "random run"),
        world_(seed),
        meddle_forth_(world_, world_.link("sw_0-mb_1"), seed, odds()),
        meddle_back_(world_, world_.link("sw_0-mb_0"), seed + 1, odds()) {
    bool slow_near = rng_.chance(0.4), slow_far = rng_.chance(0.4);
    QpAttributes attributes;
    attributes.path_mtu = 256u << rng_.below(5);
    attributes.window = static_cast<uint32_t>(1 + rng_.below(rng_.chance(0.3) ? 4 : 64));
    attributes.timeout = static_cast<uint8_t>(4 + rng_.below(5));  // 65 us to 1 ms
    // Often near the wrap of the 24-bit space.
    attributes.send_psn = rng_.chance(0.5) ? 0xffffffu - static_cast<uint32_t>(rng_.below(20))
                                           : static_cast<uint32_t>(rng_.below(1 << 24));
    attributes.receive_psn = static_cast<uint32_t>(rng_.below(1 << 24));
    attributes.min_rnr_timer = 1;
    auto memory = [&](bool slow) -> std::shared_ptr<Memory> {
      if (slow) return std::make_shared<SlowMemory>(world_, kArea, rng_.next());
      return LocalMemory::create(kArea);
    };
    connection_ = std::make_unique<Connection>(world_, kArea, attributes, memory(slow_near),
                                               memory(slow_far));
    connection_->near_cq.set_listener([this] { on_completion(); });
    fill(bytes_of(*connection_->near_memory), seed);
    plan();
  }

  void run() {
    // Some receives come late, so that RNR NAKs happen.
    for (size_t i = 0; i < messages_.size(); ++i) {
      const Message& message = messages_[i];
      if (message.write) {
        connection_->post(connection_->write(i, message.offset, message.length));
      } else {
        connection_->post(connection_->send(i, message.offset, message.length));
        late_receives_.push_back(i);
      }
    }
    while (world_.outstanding.any()) {
      if (!world_.scheduler.run_one(world_.scheduler.now() + 60 * kSecond)) {
        FAIL("nothing is left to happen");
      }
      if (!late_receives_.empty() && rng_.chance(0.05)) post_receive();
    }
    check();
  }

  // What happened, summed over both ends, so that a test sees that its faults fired.
  void add_to(std::map<std::string, uint64_t>& totals) {
    for (const char* name : {"mb_0", "mb_1"}) {
      for (const auto& row : kPortCounters) {
        totals[std::string(row.path)] += (world_.counters(name).*row.member).get();
      }
    }
  }

 private:
  static constexpr size_t kArea = 256 * 1024;
  struct Message {
    bool write;
    uint64_t offset;
    uint32_t length;
  };

  Meddler::Odds odds() {
    Meddler::Odds odds;
    odds.drop = rng_.chance(0.7) ? rng_.uniform() * 0.1 : 0;
    odds.duplicate = rng_.chance(0.5) ? rng_.uniform() * 0.1 : 0;
    odds.delay = rng_.chance(0.5) ? rng_.uniform() * 0.1 : 0;
    odds.corrupt = rng_.chance(0.3) ? rng_.uniform() * 0.05 : 0;
    return odds;
  }

  // Targets do not overlap and have gaps between them.
  void plan() {
    uint64_t at = 16;
    size_t count = 1 + rng_.below(24);
    while (messages_.size() < count) {
      auto length =
          static_cast<uint32_t>(rng_.chance(0.1) ? 0 : rng_.below(rng_.chance(0.5) ? 300 : 16000));
      if (at + length + 16 > kArea) break;
      messages_.push_back({rng_.chance(0.5), at, length});
      at += length + 16;
    }
  }

  void post_receive() {
    size_t index = late_receives_.front();
    late_receives_.pop_front();
    const Message& message = messages_[index];
    auto room = static_cast<uint32_t>(message.length);
    connection_->post(connection_->receive(index, message.offset, room));
  }

  // At the moment of completion both ends are equal.
  void on_completion() {
    for (const Completion& completion : Connection::poll(connection_->near_cq)) {
      REQUIRE(completion.status == WcStatus::kSuccess);
      REQUIRE(completion.wr_id == completed_);
      const Message& message = messages_[completed_++];
      REQUIRE(equal(message.offset, message.length));
    }
  }

  bool equal(uint64_t offset, uint64_t length) {
    auto near = bytes_of(*connection_->near_memory).subspan(offset, length);
    auto far = bytes_of(*connection_->far_memory).subspan(offset, length);
    return std::equal(near.begin(), near.end(), far.begin());
  }

  void check() {
    REQUIRE(completed_ == messages_.size());
    REQUIRE(world_.outstanding.requests == 0);
    std::vector<Completion> received = Connection::poll(connection_->far_cq);
    size_t next = 0;
    for (const Completion& completion : received) {
      while (messages_[next].write) ++next;
      REQUIRE(completion.wr_id == next);
      REQUIRE(completion.byte_len == messages_[next].length);
      ++next;
    }
    std::vector<bool> target(kArea);
    for (const Message& message : messages_) {
      REQUIRE(equal(message.offset, message.length));
      for (uint64_t i = 0; i < message.length; ++i) target[message.offset + i] = true;
    }
    std::span<uint8_t> far = bytes_of(*connection_->far_memory);
    size_t strays = 0;
    for (size_t i = 0; i < kArea; ++i) strays += !target[i] && far[i] != 0;
    REQUIRE(strays == 0);
  }

  Rng rng_;
  World world_;
  Meddler meddle_forth_, meddle_back_;
  std::unique_ptr<Connection> connection_;
  std::vector<Message> messages_;
  std::deque<size_t> late_receives_;
  size_t completed_ = 0;
};

}  // namespace

TEST_CASE("invariants: bytes arrive once, whole and in order, whatever happens to packets") {
  if (const char* seed = std::getenv("ROCEFS_SEED")) {
    RandomRun(std::strtoull(seed, nullptr, 0)).run();
    return;
  }
  constexpr uint64_t kRuns = 3000;
  std::map<std::string, uint64_t> totals;
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    INFO("replay with: ROCEFS_SEED=" << seed << " build/test/rdma_test 'invariants: *'");
    RandomRun run(seed);
    run.run();
    run.add_to(totals);
  }
  for (const char* happened :
       {"out_of_sequence", "duplicate_request", "packet_seq_err", "local_ack_timeout_err",
        "rnr_nak_retry_err", "rx_icrc_encapsulated"}) {
    INFO(happened);
    CHECK(totals[std::string("hw_counters/") + happened] > kRuns / 4);
  }
}
