// Patterns in rounds, in which a flow waits for others: permutation, all-to-all, all-reduce. A
// round begins when the last flow of the round before has passed, and a gap for computing is over.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/rng.h"
#include "rdma/workload/pattern.h"

namespace rocefs {

class Collective : public Pattern {
 public:
  struct Rule {
    uint32_t hosts = 0;
    uint64_t bytes = 0;  // of the vector that is reduced; of a flow of the others
    uint64_t rounds = 1;
    uint64_t parallel = 1;  // flows of a host at a time, of an all-to-all
    TimeNs start = 0, gap = 0, jitter = 0;
  };

  bool waits_for_arrivals() const final { return passes_ == Passes::kArrived; }
  void flow_arrived(const FlowStart& flow, TimeNs now) final {
    if (passes_ == Passes::kArrived) passed(flow, now);
  }
  void flow_ended(const FlowStart& flow, TimeNs now) final {
    if (passes_ == Passes::kEnded) passed(flow, now);
  }
  uint64_t total() const final { return saturating_product(rule_.rounds, flows_a_round_); }

 protected:
  // When a flow has passed, for those that wait for it: the acknowledgement comes to the sender a
  // way through the network later than the octets to the receiver.
  enum class Passes : uint8_t { kArrived, kEnded };
  Collective(const Rule& rule, const Rng& rng, Passes passes)
      : rule_(rule), rng_(rng), passes_(passes) {}
  // Begins the first round: from the constructor of the most derived class.
  void begin() { begin_round(rule_.start); }
  // Plans the flows that wait for nothing; returns how many the whole round has.
  virtual uint64_t begin_flows(TimeNs at) = 0;
  // Plans what waited for this flow alone.
  virtual void follow(const FlowStart&, TimeNs) {}
  // Plans a flow, after its jitter.
  void send(TimeNs at, uint32_t from, uint32_t to, uint64_t bytes);
  const Rule& rule() const { return rule_; }
  Rng& rng() { return rng_; }

 private:
  void begin_round(TimeNs at);
  void passed(const FlowStart& flow, TimeNs now);

  const Rule rule_;
  Rng rng_;
  const Passes passes_;
  uint64_t flows_a_round_ = 0;
  uint64_t round_ = 0, running_ = 0;  // flows of this round that have not passed
  TimeNs began_ = 0;
};

// Each host sends to one, and receives from one; another permutation each round.
class PermutationPattern final : public Collective {
 public:
  PermutationPattern(const Rule& rule, const Rng& rng) : Collective(rule, rng, Passes::kEnded) {
    begin();
  }
  bool follows_clock() const override { return rule().rounds == 1; }

 private:
  uint64_t begin_flows(TimeNs at) override;
};

// Host i sends to i + 1, i + 2, … in turn.
class AllToAllPattern final : public Collective {
 public:
  AllToAllPattern(const Rule& rule, const Rng& rng) : Collective(rule, rng, Passes::kEnded) {
    begin();
  }
  bool follows_clock() const override {
    return rule().rounds == 1 && rule().parallel + 1 >= rule().hosts;
  }

 private:
  uint64_t begin_flows(TimeNs at) override;
  void follow(const FlowStart& flow, TimeNs now) override;
  void send_next(uint32_t from, TimeNs at);

  std::vector<uint32_t> sent_;  // by each host
};

// Reduce-scatter and all-gather around a ring: 2 (N - 1) steps of an N-th of the vector. A host
// sends in a step what it has received in the one before.
class RingAllReducePattern final : public Collective {
 public:
  RingAllReducePattern(const Rule& rule, const Rng& rng) : Collective(rule, rng, Passes::kArrived) {
    begin();
  }

 private:
  struct Host {
    uint32_t started = 0, sent = 0, received = 0;  // steps; sent: arrived at the next host
  };
  uint64_t begin_flows(TimeNs at) override;
  void follow(const FlowStart& flow, TimeNs now) override;
  void send_if_ready(uint32_t host, TimeNs at);

  std::vector<Host> hosts_;
};

// Reduce up a binary tree, broadcast down: host i has the children 2i + 1 and 2i + 2.
class TreeAllReducePattern final : public Collective {
 public:
  TreeAllReducePattern(const Rule& rule, const Rng& rng) : Collective(rule, rng, Passes::kArrived) {
    begin();
  }

 private:
  uint64_t begin_flows(TimeNs at) override;
  void follow(const FlowStart& flow, TimeNs now) override;
  uint32_t children(uint32_t host) const;
  void broadcast(uint32_t host, TimeNs at);

  std::vector<uint32_t> awaited_;  // children that have not sent yet
};

}  // namespace rocefs
