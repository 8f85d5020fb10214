// Run of sends, writes, reads and atomics over a link that loses, doubles, delays and damages
// packets, with all choices from a seed. It checks, while it runs and at its end, that bytes arrive
// once, whole and in order.
#pragma once

#include <map>
#include <optional>

#include "test/rdma/world.h"

namespace rocefs::test {

// Options of a run beyond go-back-N on one path.
struct RunOptions {
  bool near_sr = false, far_sr = false;
  bool ops = false;
  double flip = 0;    // probability of a flip of the agreement bit
  double toggle = 0;  // probability of a knob change at each event
};

class RandomRun {
 public:
  explicit RandomRun(uint64_t seed, const RunOptions& options = {})
      : options_(options),
        rng_(seed, "random run"),
        knobs_(seed, "knobs"),
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
    attributes.max_dest_rd_atomic = static_cast<uint8_t>(1 + rng_.below(4));
    attributes.max_rd_atomic = attributes.max_dest_rd_atomic;
    auto memory = [&](bool slow) -> std::shared_ptr<Memory> {
      if (slow) return std::make_shared<SlowMemory>(world_, kArea, rng_.next());
      return LocalMemory::create(kArea);
    };
    connection_ = std::make_unique<Connection>(world_, kArea, attributes, memory(slow_near),
                                               memory(slow_far));
    for (const char* name : {"mb_0", "mb_1"}) set_knobs(name);
    connection_->near_cq.set_listener([this] { on_completion(); });
    plan();
    for (const Message& message : messages_) {
      Memory& source = is_read(message) ? *connection_->far_memory : *connection_->near_memory;
      if (message.kind != Kind::kAtomic) {
        fill(bytes_of(source).subspan(message.offset, message.length), seed + message.offset);
      }
    }
  }

  void run() {
    // Some receives come late, so that RNR NAKs happen.
    for (size_t i = 0; i < messages_.size(); ++i) {
      connection_->post(request_of(i));
      if (takes_receive(messages_[i])) late_receives_.push_back(i);
    }
    while (world_.outstanding.any()) {
      if (!world_.scheduler.run_one(world_.scheduler.now() + 60 * kSecond)) {
        FAIL("nothing is left to happen: " << completed_ << " of " << messages_.size() << " done, "
                                           << world_.outstanding.packets << " packets outstanding");
      }
      if (knobs_.chance(options_.toggle)) toggle();
      if (!late_receives_.empty() && rng_.chance(0.05)) post_receive();
    }
    check();
  }

  // Adds the counters of both ends to `totals`, so that a test sees that its faults fired.
  void add_to(std::map<std::string, uint64_t>& totals) {
    for (const char* name : {"mb_0", "mb_1"}) {
      for (const auto& row : kPortCounters) {
        totals[std::string(row.path)] += (world_.counters(name).*row.member).get();
      }
    }
  }

 private:
  static constexpr size_t kArea = 256 * 1024;
  static constexpr uint64_t kCounter = 0;  // where the far end's number is that atomics add to
  enum class Kind { kWrite, kWriteImm, kSend, kRead, kAtomic, kAtomicWrite };
  struct Message {
    Kind kind;
    uint64_t offset;
    uint32_t length;
  };
  static bool takes_receive(const Message& message) {
    return message.kind == Kind::kSend || message.kind == Kind::kWriteImm;
  }
  static bool is_read(const Message& message) { return message.kind == Kind::kRead; }

  SendRequest request_of(size_t i) {
    const Message& message = messages_[i];
    SendRequest request = connection_->write(i, message.offset, message.length);
    switch (message.kind) {
      case Kind::kWrite:
        break;
      case Kind::kWriteImm:
        request.op = SendOp::kWriteImm;
        request.immediate = static_cast<uint32_t>(i);
        break;
      case Kind::kSend:
        request.op = SendOp::kSend;
        break;
      case Kind::kRead:
        request.op = SendOp::kRead;
        break;
      case Kind::kAtomicWrite:
        request.op = SendOp::kAtomicWrite;
        break;
      case Kind::kAtomic:
        return connection_->fetch_add(i, kCounter, 1, message.offset);
    }
    if (message.length > 2 && rng_.chance(0.3)) {  // in two parts
      Sge whole = request.sges.entries()[0];
      auto first = static_cast<uint32_t>(1 + rng_.below(message.length - 1));
      request.sges = Sge{whole.address, first, whole.lkey};
      request.sges.add({whole.address + first, whole.length - first, whole.lkey});
    }
    return request;
  }

  Meddler::Odds odds() {
    Meddler::Odds odds;
    odds.drop = rng_.chance(0.7) ? rng_.uniform() * 0.1 : 0;
    odds.duplicate = rng_.chance(0.5) ? rng_.uniform() * 0.1 : 0;
    odds.delay = rng_.chance(0.5) ? rng_.uniform() * 0.1 : 0;
    odds.corrupt = rng_.chance(0.3) ? rng_.uniform() * 0.05 : 0;
    odds.flip = options_.flip;
    return odds;
  }

  void set_knobs(std::string_view name) {
    Device& device = world_.device(name);
    set_sr(device, name == "mb_0" ? options_.near_sr : options_.far_sr, knobs_.below(64));
    set_ops(device, options_.ops, 1 + knobs_.below(32), knobs_.below(6));
  }
  void toggle() {
    bool* knob[] = {&options_.near_sr, &options_.far_sr, &options_.ops};
    bool& one = *knob[knobs_.below(3)];
    one = !one;
    for (const char* name : {"mb_0", "mb_1"}) set_knobs(name);
  }

  // Targets do not overlap and have gaps between them.
  void plan() {
    uint64_t at = 64;
    size_t count = 1 + rng_.below(24);
    while (messages_.size() < count) {
      auto length =
          static_cast<uint32_t>(rng_.chance(0.1) ? 0 : rng_.below(rng_.chance(0.5) ? 300 : 16000));
      auto kind = static_cast<Kind>(rng_.below(6));
      if (kind == Kind::kAtomic || kind == Kind::kAtomicWrite) length = 8;
      if (kind == Kind::kAtomicWrite) at = (at + 7) / 8 * 8;
      if (at + length + 16 > kArea) break;
      messages_.push_back({kind, at, length});
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
      if (message.kind == Kind::kAtomic) {
        REQUIRE(number(*connection_->near_memory, message.offset) == atomics_++);
      } else {
        REQUIRE(equal(message.offset, message.length));
      }
    }
  }

  uint64_t number(Memory& memory, uint64_t offset) {
    uint64_t value = 0;
    std::memcpy(&value, bytes_of(memory).data() + offset, sizeof value);
    return value;
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
      while (!takes_receive(messages_[next])) ++next;
      REQUIRE(completion.has_immediate == (messages_[next].kind == Kind::kWriteImm));
      if (completion.has_immediate) REQUIRE(completion.immediate == next);
      REQUIRE(completion.wr_id == next);
      REQUIRE(completion.byte_len == messages_[next].length);
      ++next;
    }
    REQUIRE(number(*connection_->far_memory, kCounter) == atomics_);
    // Every other byte of both memories is unchanged.
    std::vector<bool> near_target(kArea), far_target(kArea);
    for (uint64_t i = 0; i < 8; ++i) far_target[kCounter + i] = true;
    for (const Message& message : messages_) {
      bool atomic = message.kind == Kind::kAtomic;
      if (!atomic) REQUIRE(equal(message.offset, message.length));
      for (uint64_t i = 0; i < message.length; ++i) {
        near_target[message.offset + i] = true;
        far_target[message.offset + i] = far_target[message.offset + i] || !atomic;
      }
    }
    std::span<uint8_t> near = bytes_of(*connection_->near_memory);
    std::span<uint8_t> far = bytes_of(*connection_->far_memory);
    size_t strays = 0;
    for (size_t i = 0; i < kArea; ++i) {
      strays += (!far_target[i] && far[i] != 0) + (!near_target[i] && near[i] != 0);
    }
    REQUIRE(strays == 0);
  }

  RunOptions options_;
  Rng rng_, knobs_;
  World world_;
  Meddler meddle_forth_, meddle_back_;
  std::unique_ptr<Connection> connection_;
  std::vector<Message> messages_;
  std::deque<size_t> late_receives_;
  size_t completed_ = 0;
  uint64_t atomics_ = 0;
};

}  // namespace rocefs::test
