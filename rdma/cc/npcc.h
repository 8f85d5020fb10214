// NPCC: network-based proactive congestion control: a switch watches the length of its own queues
// and sends CNPs to the senders itself, without waiting for the receivers. Sans-IO.
//
// Each interval every watched queue is judged by its depth and its trend:
//
//             rising     as it was   falling
//   shallow   a few      none        none
//   deep      many       a few       a few
//
// A queue that exists for less than a microburst's time, and never was deep, gets none: it may be
// empty before a sender could react. The CNPs of a queue go to its flows in proportion to the
// octets that each brought in the interval. A switch takes `processing_delay` to count and to build
// them.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/counter.h"
#include "core/loop/scheduler.h"
#include "core/tree/knob.h"
#include "rdma/cc/cnp.h"
#include "rdma/cc/npcc_flows.h"
#include "rdma/packet/packet.h"
#include "rdma/packet/traffic_class.h"

namespace rocefs {

struct NpccParameters {
  uint64_t deep_threshold = 0;  // octets
  TimeNs interval_ns = 0;
  uint64_t microburst_us = 0;
  uint64_t rising_shallow = 0, rising_deep = 0, other_deep = 0;  // CNPs per interval
  TimeNs processing_delay_ns = 0;
  uint64_t cnp_dscp = 0;
};

inline constexpr KnobRow kNpccKnobs[] = {
    {"deep_threshold", KnobType::kSize, 1, uint64_t{1} << 40, "100K", "", "byte",
     "a queue of this length is deep, a shorter one shallow"},
    {"interval", KnobType::kDuration, 1'000, 1'000'000'000, "10us", "", "s",
     "how often queues are judged"},
    {"microburst_us", KnobType::kUint, 0, 1'000'000, "20", "", "us",
     "a queue that comes and goes within this time without being deep gets no CNP"},
    {"cnps_rising_shallow", KnobType::kUint, 0, 1024, "1", "", "",
     "CNPs per interval for a queue that is shallow and grows"},
    {"cnps_rising_deep", KnobType::kUint, 0, 1024, "4", "", "",
     "CNPs per interval for a queue that is deep and grows"},
    {"cnps_deep", KnobType::kUint, 0, 1024, "1", "", "",
     "CNPs per interval for a queue that is deep and does not grow"},
    {"processing_delay", KnobType::kDuration, 0, 1'000'000'000, "20us", "", "s",
     "from the end of an interval to the departure of its CNPs"},
    {"cnp_dscp", KnobType::kUint, 0, 63, "48", "", "", "the CNPs' DSCP"},
};

// Knobs of one port.
inline constexpr KnobRow kNpccPortKnobs[] = {
    {"enable", KnobType::kBool, 0, 0, "0", "", "", "1: watches this egress"},
    {"queue/0/enable", KnobType::kBool, 0, 0, "1", "", "", "1: watches its queue of priority 0"},
    {"queue/1/enable", KnobType::kBool, 0, 0, "1", "", "", "1: watches its queue of priority 1"},
    {"queue/2/enable", KnobType::kBool, 0, 0, "1", "", "", "1: watches its queue of priority 2"},
    {"queue/3/enable", KnobType::kBool, 0, 0, "1", "", "", "1: watches its queue of priority 3"},
    {"queue/4/enable", KnobType::kBool, 0, 0, "1", "", "", "1: watches its queue of priority 4"},
    {"queue/5/enable", KnobType::kBool, 0, 0, "1", "", "", "1: watches its queue of priority 5"},
    {"queue/6/enable", KnobType::kBool, 0, 0, "1", "", "", "1: watches its queue of priority 6"},
    {"queue/7/enable", KnobType::kBool, 0, 0, "1", "", "", "1: watches its queue of priority 7"},
};

struct NpccCounters {
  Counter cnp_sent, unresolved, overrun, microbursts;
};
inline constexpr CounterRow<NpccCounters> kNpccCounters[] = {
    {"cnp_sent", &NpccCounters::cnp_sent, "CNPs that the switch sent of its own"},
    {"unresolved", &NpccCounters::unresolved,
     "CNPs not sent because the flow's sending queue pair is unknown"},
    {"overrun", &NpccCounters::overrun, "CNPs not sent because 65536 were being built already"},
    {"microbursts", &NpccCounters::microbursts,
     "queues that came and went within microburst_us without being deep"},
};

// Interface to the switch.
class NpccHost {
 public:
  virtual ~NpccHost() = default;
  // Octets queued at an egress.
  virtual uint64_t queue_length(size_t egress, size_t priority) const = 0;
  // The queue pair that sends the flow; empty if unknown. `last`: the one that sent it last, which
  // is looked at first. May return that, and find out later: learn_sender().
  virtual std::optional<uint32_t> sender_of(const NpccFlowKey& flow,
                                            std::optional<uint32_t> last) const = 0;
  // Forwards a packet made by the switch.
  virtual void send(PacketPtr&& packet, TimeNs now) = 0;
  // Whether any queue is watched from now on.
  virtual void watching(bool any) = 0;
};

// Core thread.
class Npcc final : public KnobOwner {
 public:
  Npcc(NpccHost& host, Scheduler& scheduler, PacketPool& pool);

  // Adds an egress; returns its number. Unwatched at first.
  size_t add_port();
  KnobOwner& port(size_t egress) { return *ports_[egress]; }
  bool watches(size_t egress, size_t priority) const { return ports_[egress]->enabled[priority]; }
  // A packet has entered a watched queue.
  void packet_queued(const Packet& packet, size_t ingress, size_t egress, size_t priority,
                     TimeNs now);
  // The answer to a sender_of() that could not be given at once.
  void learn_sender(const NpccFlowKey& flow, std::optional<uint32_t> sender);
  // Restores the state after construction, but keeps the knobs.
  void reset();

  NpccCounters& counters() { return counters_; }
  // The flows seen within the last second, a line per flow, the latest first.
  std::string flows_text() const;

  // In the order of kNpccKnobs.
  void apply(std::span<const KnobValue> values) override;

 private:
  struct Queue {
    bool there = false;     // not empty at the last judgement, or since
    bool was_deep = false;  // since the queue became non-empty
    TimeNs since = 0;       // when the queue became non-empty
    uint64_t before = 0;    // length at the last judgement
    uint64_t queued = 0;    // octets queued in this interval
  };
  struct PortUnit final : KnobOwner {
    PortUnit(Npcc& npcc, size_t number) : owner(npcc), egress(number) {}
    Npcc& owner;
    const size_t egress;
    std::array<bool, kPriorities> enabled{};
    std::array<Queue, kPriorities> queues;
    void apply(std::span<const KnobValue> values) override;
  };
  static constexpr size_t kMaxDepartures = 65536;
  static constexpr TimeNs kLookUpGap = kMillisecond;  // between two searches for an unknown sender
  struct Due {
    TimeNs at;
    CnpAddress address;
    size_t egress, priority;  // of the queue that it is about
  };

  void note_watched();
  void forget(size_t egress, size_t priority);
  void schedule_departure();
  void on_interval(TimeNs now);
  void on_departure(TimeNs now);
  uint64_t judge(Queue& queue, uint64_t length, TimeNs now);
  void notify(size_t egress, size_t priority, uint64_t queued, uint64_t count, TimeNs now);
  void look_up(NpccFlow& flow, TimeNs now);
  void owe(const NpccFlow& flow, TimeNs now);

  NpccHost& host_;
  Scheduler& scheduler_;
  PacketPool& pool_;
  NpccParameters parameters_;
  NpccCounters counters_;
  std::vector<std::unique_ptr<PortUnit>> ports_;
  NpccFlows flows_;
  uint64_t interval_ = 1;  // number of the present interval
  std::deque<Due> departures_;
  Event tick_;
  Event departure_;
};

}  // namespace rocefs
