// Link: one direction of a cable. It pulls a packet from its source when its transmitter is free,
// serialises it at the link's rate, loses it with the link's probability, and delivers it after the
// propagation delay, in order. PAUSE and RESUME of PFC (IEEE 802.1Qbb) pass packets by: they are no
// packets, and what they say is kept by the other direction of the cable, which they stop.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/counter.h"
#include "core/base/rng.h"
#include "core/loop/scheduler.h"
#include "core/tree/knob.h"
#include "rdma/fabric/pause_frames.h"
#include "rdma/packet/packet.h"
#include "rdma/packet/traffic_class.h"
#include "rdma/wire/ethernet.h"

namespace rocefs {

class TraceHash;

// What a link transmits from.
class LinkSource {
 public:
  virtual ~LinkSource() = default;
  // The next packet to transmit, of a priority that the link does not have paused; null if there is
  // none. The source kicks the link when there is, the link itself when a priority may go on.
  virtual Packet* pull(TimeNs now) = 0;
  // False only if pull() would give nothing until the source kicks the link again.
  virtual bool ready() const { return true; }
};

// Where a link delivers to. Takes the packet.
class LinkSink {
 public:
  virtual ~LinkSink() = default;
  virtual void receive(Packet* packet, TimeNs now) = 0;
};

struct LinkParameters {
  uint64_t rate_bps = 0;
  TimeNs delay_ns = 0;
  double loss = 0;
  // Bytes that may wait in a switch on account of this direction: behind it when a switch
  // transmits on it, having come through it when it leads into a switch.
  uint64_t buffer_bytes = 0;
  bool up = true;
};

inline constexpr KnobRow kLinkKnobs[] = {
    {"rate", KnobType::kRate, 1'000'000, 10'000'000'000'000, "10G", "", "bit/s",
     "transmission rate of this direction, Ethernet framing included"},
    {"delay", KnobType::kDuration, 0, 10'000'000'000, "1us", "", "s", "propagation delay"},
    {"loss", KnobType::kProbability, 0, 1, "0", "", "",
     "probability that a packet is lost on this direction"},
    {"buffer", KnobType::kSize, 0, uint64_t{1} << 40, "12M", "", "byte",
     "what may wait in the switch: behind this direction, or having come through it; at first as "
     "much as the switch holds"},
    {"state", KnobType::kWord, 0, 0, "up", "down up", "",
     "down: everything that is transmitted or on the way is lost"},
};

struct LinkCounters {
  Counter packets, bytes, lost, lost_bytes, overflowed;
};
inline constexpr CounterRow<LinkCounters> kLinkCounters[] = {
    {"packets", &LinkCounters::packets, "packets transmitted on this direction"},
    {"bytes", &LinkCounters::bytes, "octets transmitted, IP header to ICRC"},
    {"lost", &LinkCounters::lost, "packets that the link lost"},
    {"lost_bytes", &LinkCounters::lost_bytes, "octets of these, IP header to ICRC"},
    {"overflowed", &LinkCounters::overflowed, "packets dropped by the switch: its buffer was full"},
};

struct PauseCounters {
  Counter pause_received;
};
inline constexpr CounterRow<PauseCounters> kPauseCounters[] = {
    {"pause_received", &PauseCounters::pause_received,
     "PAUSE frames by which the far end of the cable stopped this port"},
};
// What PFC has told a transmitter of one priority.
struct PauseState {
  PauseCounters counters;
  Counter paused;  // 0 or 1
};

// Octets of a PAUSE frame (IEEE 802.3, annex 31B: the shortest frame).
inline constexpr uint64_t kPauseOctets = 64;

class Link final : public KnobOwner {
 public:
  // Takes part in the trace as number `id`.
  Link(std::string name, uint32_t id, const LinkParameters& parameters, uint64_t seed,
       Scheduler& scheduler, PacketPool& pool, TraceHash& trace);
  ~Link() override;

  const std::string& name() const { return name_; }
  void connect(LinkSource& source, LinkSink& sink) {
    source_ = &source;
    sink_ = &sink;
  }
  // The other direction of the cable; that one is told too.
  void set_reverse(Link& reverse) {
    reverse_ = &reverse;
    reverse.reverse_ = this;
  }
  LinkSink& sink() { return *sink_; }
  // Puts something between the link and its far end.
  void set_sink(LinkSink& sink) { sink_ = &sink; }
  const LinkParameters& parameters() const { return parameters_; }
  // Whether it carries anything: its state is up, and so is what it needs outside the fabric.
  bool up() const { return parameters_.up && carrier_; }
  // Without a carrier it is as if its state were down. Core thread.
  void set_carrier(bool carrier);
  LinkCounters& counters() { return counters_; }
  const LinkCounters& counters() const { return counters_; }
  // The nanoseconds that `octets` from IP header to ICRC take at the present rate.
  double serialization_ns(uint64_t octets) const;

  // The source has something to transmit.
  void kick();

  // Transmits PAUSE or RESUME of a priority: it stops the reverse direction's transmitter when it
  // gets there. It waits for the end of the packet that is being transmitted, not for those behind
  // it, and takes no time from these; a direction that is down loses it.
  void send_pause(size_t priority, bool pause);
  // The priorities, a bit each, that may not be transmitted on this direction now.
  uint8_t paused() const { return paused_; }
  const PauseState& pause_state(size_t priority) const { return pause_states_[priority]; }
  PauseState& pause_state(size_t priority) { return pause_states_[priority]; }

  // As it was when it was built, but for its parameters and counters. Sources must have nothing.
  void reset();

  // Is told each time that the direction has gone up or down: what PFC had paused in either
  // direction of the cable is forgotten by then. On the core's thread.
  void add_state_listener(std::function<void()> listener) {
    state_listeners_.push_back(std::move(listener));
  }
  // Is told of each change of parameters, before the state listeners.
  void add_parameter_listener(std::function<void()> listener) {
    parameter_listeners_.push_back(std::move(listener));
  }

  // Knobs, in the order of kLinkKnobs.
  void apply(std::span<const KnobValue> values) override;
  static std::vector<KnobValue> values_of(const LinkParameters& parameters);
  static LinkParameters parameters_of(std::span<const KnobValue> values);

 private:
  void on_transmit(TimeNs now);
  void on_deliver(TimeNs now);
  void on_pause_frame(TimeNs now);
  void take_pause(const PauseFrame& frame);
  void forget_pauses();
  void turned();
  void lose(Packet* packet, TimeNs now);
  TimeNs serialize(uint64_t octets);

  const std::string name_;
  const uint32_t id_;
  const uint64_t seed_;
  LinkParameters parameters_;
  bool carrier_ = true;
  Scheduler& scheduler_;
  PacketPool& pool_;
  TraceHash& trace_;
  Rng rng_;
  LinkSource* source_ = nullptr;
  LinkSink* sink_ = nullptr;
  Link* reverse_ = nullptr;
  std::vector<std::function<void()>> state_listeners_;
  std::vector<std::function<void()>> parameter_listeners_;
  LinkCounters counters_;
  PacketFifo in_flight_;
  TimeNs free_at_ = 0;
  TimeNs last_arrival_ = 0;
  uint64_t remainder_ = 0;  // of the last division by the rate: no time is gained or lost
  struct {
    uint64_t octets = 0, whole = 0, remainder = 0;
  } divided_;             // what that many octets take: nanoseconds, and the remainder
  bool pulling_ = false;  // the source is being asked
  bool kicked_ = false;   // meanwhile: it has another one
  uint8_t paused_ = 0;
  std::array<PauseState, kPriorities> pause_states_;
  PauseFrames pause_frames_;  // on their way on this direction
  TimeNs last_pause_ = 0;     // when the latest of them arrives
  Event transmit_;
  Event deliver_;
  Event pause_frame_;
};

}  // namespace rocefs
