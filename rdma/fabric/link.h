// Link: one direction of a cable. Pulls a packet from its source when its transmitter is free,
// serialises it at the link's rate, loses it with the link's probability, and delivers it after the
// propagation delay, in order. PAUSE and RESUME of PFC (IEEE 802.1Qbb) bypass packets; they stop
// the other direction of the cable, which keeps their state.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/counter.h"
#include "core/base/prefetch.h"
#include "core/base/rng.h"
#include "core/loop/scheduler.h"
#include "core/tree/knob.h"
#include "rdma/fabric/crossings.h"
#include "rdma/fabric/in_flight.h"
#include "rdma/fabric/pause_frames.h"
#include "rdma/packet/packet.h"
#include "rdma/packet/traffic_class.h"
#include "rdma/wire/ethernet.h"

namespace rocefs {

// Source of a link's packets. A link and its ends pass packets as bare pointers, because those stay
// in registers; who gets one puts it into a PacketPtr at once.
class LinkSource {
 public:
  virtual ~LinkSource() = default;
  // Gives the link the next packet to transmit, of a priority that is not paused; null if there is
  // none. The source kicks the link when it has a packet, the link itself when a priority is
  // resumed.
  virtual Packet* pull(TimeNs now) = 0;
  // Called after pull() has given a packet: false only if it would return null until the source
  // kicks the link again.
  virtual bool ready() { return true; }
  // Asks the CPU for memory that pull() will read; changes nothing. Steps as those of an event.
  virtual void prefetch(int) const {}
};

// Far end of a link.
class LinkSink {
 public:
  virtual ~LinkSink() = default;
  // Takes the packet.
  virtual void receive(Packet* packet, TimeNs now) = 0;
  // Asks the CPU for memory that receive() will read; changes nothing. Steps as those of an event.
  virtual void prefetch(const Packet&, int) const {}
};

class Link;
struct Crossing;

// LinkTap: is told of what links transmit whose knob `capture` is on.
class LinkTap {
 public:
  virtual ~LinkTap() = default;
  // At the begin of the transmission, before loss.
  virtual void transmitted(const Link& link, Packet& packet, TimeNs now) = 0;
  // `at`: the begin of the frame's transmission, not before now.
  virtual void pause_sent(const Link& link, size_t priority, bool pause, TimeNs at) = 0;
};

struct LinkParameters {
  uint64_t rate_bps = 0;
  TimeNs delay_ns = 0;
  double loss = 0;
  // Octets that may wait in the switch that transmits on this direction, and those received on it
  // that may be stored in the switch that it leads into.
  uint64_t buffer_bytes = uint64_t{1} << 40, ingress_buffer_bytes = uint64_t{1} << 40;
  bool up = true;
  bool capture = false;
};

inline constexpr KnobRow kLinkKnobs[] = {
    {"rate", KnobType::kRate, 1'000'000, 10'000'000'000'000, "10G", "", "bit/s",
     "transmission rate of this direction, Ethernet framing included"},
    {"delay", KnobType::kDuration, 0, 10'000'000'000, "1us", "", "s", "propagation delay"},
    {"loss", KnobType::kProbability, 0, 1, "0", "", "",
     "probability that a packet is lost on this direction"},
    {"buffer", KnobType::kSize, 0, uint64_t{1} << 40, "1T", "", "byte",
     "octets that may wait in the switch which transmits on this direction; 1T leaves the limit to "
     "the switch's buffer"},
    {"ingress_buffer", KnobType::kSize, 0, uint64_t{1} << 40, "1T", "", "byte",
     "octets received on this direction that may be stored in the switch which it leads into; 1T "
     "leaves the limit to the switch's buffer"},
    {"state", KnobType::kWord, 0, 0, "up", "down up", "",
     "down: packets transmitted or in flight are lost"},
    {"capture", KnobType::kBool, 0, 0, "0", "", "",
     "1: a capture into `pcap` has the packets and PAUSE frames of this direction, too"},
};

struct LinkCounters {
  Counter packets, bytes;
};
inline constexpr CounterRow<LinkCounters> kLinkCounters[] = {
    {"packets", &LinkCounters::packets, "packets transmitted on this direction"},
    {"bytes", &LinkCounters::bytes, "octets transmitted, IP header to ICRC"},
};

struct LinkLosses {
  Counter lost, lost_bytes;
  Counter overflowed;  // add_shared(): the switches at both ends count
};
inline constexpr CounterRow<LinkLosses> kLinkLosses[] = {
    {"lost", &LinkLosses::lost, "packets lost by the link"},
    {"lost_bytes", &LinkLosses::lost_bytes, "octets of lost packets, IP header to ICRC"},
    {"overflowed", &LinkLosses::overflowed, "packets dropped by the switch: its buffer was full"},
};

struct PauseCounters {
  Counter pause_received, paused_ns;
};
inline constexpr CounterRow<PauseCounters> kPauseCounters[] = {
    {"pause_received", &PauseCounters::pause_received,
     "PAUSE frames by which the far end of the cable stopped this port"},
    {"paused_ns", &PauseCounters::paused_ns,
     "time for which the far end of the cable had paused this priority, whether or not packets "
     "waited: ns, added when the pause ends"},
};
// PFC state of a transmitter, per priority.
struct PauseState {
  PauseCounters counters;
  Counter paused;    // 0 or 1
  TimeNs since = 0;  // while paused

  void set(bool pause, TimeNs now) {
    if (pause == (paused.get() != 0)) return;
    if (!pause) counters.paused_ns.add(static_cast<uint64_t>(now - since));
    since = now;
    paused.set(pause);
  }
  // The pause that has not ended included.
  uint64_t paused_ns(TimeNs now) const {
    return counters.paused_ns.get() + (paused.get() ? static_cast<uint64_t>(now - since) : 0);
  }
};

// Octets of a PAUSE frame (IEEE 802.3, annex 31B: the shortest frame).
inline constexpr uint64_t kPauseOctets = 64;

// Aligned to a pair of cache lines, which CPUs fetch together.
class alignas(128) Link final : public KnobOwner {
 public:
  // `id`: number in the trace. `sides` outlive the link.
  Link(std::string name, uint32_t id, const LinkParameters& parameters, uint64_t seed,
       const LinkSides& sides);

  const std::string& name() const { return rest_->name; }
  // Null: none.
  void set_tap(LinkTap* tap) {
    rest_->tap = tap;
    note_parameters();
  }
  uint32_t id() const { return id_; }
  // The transmitter's.
  Scheduler& scheduler() { return sides_.scheduler; }
  // The far end's.
  Scheduler& far_scheduler() { return sides_.far_scheduler; }
  // Whether packets go to another part of the fabric.
  bool crosses() const { return sides_.crossings != nullptr; }
  // Far end's part: takes what has crossed.
  void take(Crossing& crossing);
  void take(PacketPtr&& crossed);
  // Transmitter's core: pulls no packet until go_on().
  void hold();
  void go_on();
  void connect(LinkSource& source, LinkSink& sink) {
    source_ = &source;
    sink_ = rest_->far_end = &sink;
  }
  // Sets the other direction of the cable, in both links.
  void set_reverse(Link& reverse) {
    rest_->reverse = &reverse;
    reverse.rest_->reverse = this;
  }
  LinkSink& sink() { return *sink_; }
  // Whether a filter is between the link and its far end.
  bool filtered() const { return sink_ != rest_->far_end; }
  // Places a filter between the link and its far end.
  void set_sink(LinkSink& sink) { sink_ = &sink; }
  const LinkParameters& parameters() const { return parameters_; }
  // Whether the direction works: its state is up, and it has a carrier.
  bool up() const { return up_; }
  // Carrier outside the fabric: without it the direction is down. Core thread.
  void set_carrier(bool carrier);
  LinkCounters& counters() { return counters_; }
  const LinkCounters& counters() const { return counters_; }
  LinkLosses& losses() { return rest_->losses; }
  const LinkLosses& losses() const { return rest_->losses; }
  // Nanoseconds to serialise `octets` from IP header to ICRC at the present rate.
  double serialization_ns(uint64_t octets) const;

  // The source has a packet to transmit.
  void kick();
  // Asks the CPU for what kick() will read.
  void prefetch() const {
    __builtin_prefetch(&transmit_, 1);
    __builtin_prefetch(&source_, 1);
    prefetch_two_lines(&deliver_);
  }

  // Transmits PAUSE or RESUME of a priority, which stops the reverse direction's transmitter on
  // arrival. It waits for the end of the packet in transmission, not for later ones, and takes no
  // bandwidth from them; a direction that is down loses it.
  void send_pause(size_t priority, bool pause);
  // Arrival of the latest frame that send_pause() has sent.
  TimeNs pause_arrival() const { return rest_->last_pause; }
  // Paused priorities of this direction, a bit each.
  uint8_t paused() const { return paused_; }
  const PauseState& pause_state(size_t priority) const { return rest_->pause_states[priority]; }
  PauseState& pause_state(size_t priority) { return rest_->pause_states[priority]; }

  // Restores the initial state, except for parameters and counters. Sources must be empty.
  void reset();
  // Core thread.
  void clear_counters();

  // Calls `listener` each time the direction goes up or down, after PFC's state was cleared in both
  // directions of the cable. Core thread.
  void add_state_listener(std::function<void()> listener) {
    rest_->state_listeners.push_back(std::move(listener));
  }
  // Calls `listener` at each change of parameters, before the state listeners.
  void add_parameter_listener(std::function<void()> listener) {
    rest_->parameter_listeners.push_back(std::move(listener));
  }

  // Knobs, in the order of kLinkKnobs.
  void apply(std::span<const KnobValue> values) override;
  static std::vector<KnobValue> values_of(const LinkParameters& parameters);
  static LinkParameters parameters_of(std::span<const KnobValue> values);

 private:
  void prefetch_transmit(int step) const;
  void prefetch_deliver(int step) const;
  void on_transmit(TimeNs now);
  void on_deliver(TimeNs now);
  void on_pause_frame(TimeNs now);
  void arrive(PacketPtr&& packet, TimeNs arrival);
  void arrive(const PauseFrame& frame);
  void take_pause(const PauseFrame& frame);
  void forget_pauses();
  void turned();
  void lose(PacketPtr&& packet, TimeNs now);
  TimeNs serialize(uint64_t octets);

  // Copies of parameters for the packet path.
  void note_parameters();

  // Needed less often than once a packet.
  struct Rest {
    Rest(std::string link_name, uint64_t link_seed, Link& link)
        : name(std::move(link_name)),
          seed(link_seed),
          rng(first_rng()),
          pause_frame(event_of<&Link::on_pause_frame>(&link)) {}
    Rng first_rng() const { return Rng(seed, "link " + name); }

    const std::string name;
    const uint64_t seed;
    Rng rng;
    LinkLosses losses;
    Link* reverse = nullptr;
    LinkSink* far_end = nullptr;
    LinkTap* tap = nullptr;
    std::vector<std::function<void()>> state_listeners;
    std::vector<std::function<void()>> parameter_listeners;
    std::array<PauseState, kPriorities> pause_states;
    PauseFrames pause_frames;  // in flight on this direction
    TimeNs last_pause = 0;     // arrival of the latest frame
    TimeNs last_crossed = 0;   // delivery of the latest packet from another core
    Event pause_frame;
  };
  const std::unique_ptr<Rest> rest_;
  LinkParameters parameters_;

  // Five cache lines: the slots of packets in flight; two that a transmission needs, and two that a
  // delivery needs, of which a transmission needs one. The links of a thousand hosts do not fit the
  // caches, and each line costs a packet a miss.
  alignas(64) InFlight::FirstSlots first_slots_;

  alignas(128) Event transmit_;
  LinkSource* source_ = nullptr;
  const LinkSides& sides_;
  TimeNs free_at_ = 0;
  uint64_t rate_bps_ = 0;
  TimeNs delay_ns_ = 0;
  uint64_t remainder_ = 0;  // remainder of the division by the rate
  // Result for divided_octets_: nanoseconds and remainder.
  uint64_t divided_remainder_ = 0;
  uint32_t divided_ns_ = 0;  // half a second at most: 64 KiB at the least rate
  uint16_t divided_octets_ = 0;
  uint8_t paused_ = 0;
  bool pulling_ : 1 = false;  // pull() is running, or must not: hold()
  bool kicked_ : 1 = false;   // the source has kicked the link during pull()
  bool carrier_ : 1 = true;
  bool up_ : 1 = true;  // parameters_.up and carrier_
  bool lossy_ : 1 = false;
  bool captures_ : 1 = false;  // parameters_.capture, with a tap

  alignas(128) Event deliver_;
  // The number fits the line because it lies in the padding of `in_flight_`.
  [[no_unique_address]] InFlight in_flight_{first_slots_};
  const uint32_t id_;
  LinkSink* sink_ = nullptr;
  LinkCounters counters_;
  const LinkSides& far_sides_;  // the same, for deliveries, which do not touch the other lines
};

}  // namespace rocefs
