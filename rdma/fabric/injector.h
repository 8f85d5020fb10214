// Injector: scripted faults of one direction of a cable. Placed between a link and its far end
// while a fault is armed or a packet held; otherwise packets bypass it.
//
// Core thread.
#pragma once

#include <atomic>
#include <bitset>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/counter.h"
#include "core/base/result.h"
#include "core/base/rng.h"
#include "core/base/time.h"
#include "core/loop/scheduler.h"
#include "rdma/fabric/link.h"
#include "rdma/packet/packet.h"

namespace rocefs {

enum class InjectAction : uint8_t {
  kDrop,
  kDuplicate,  // the copy follows `delay` after the packet
  kReorder,    // held until `by` packets for the same queue pair have passed, `delay` at most
  kCorrupt,    // flips a random bit
  kDelay,      // held for `delay`; later packets overtake it
  kMark,       // sets CE if the packet is ECN-capable
  kDown,       // the direction goes down and loses the packet; up again after `delay` if given
  kUp,
};

enum class CorruptPart : uint8_t {
  kPayload,
  kIcrc,
  kHeader,    // destination QPN and PSN
  kReserved,  // the six bits of the BTH outside the ICRC
};

// A fault as written to inject/add: NAME ACTION LINK [KEY=VALUE …].
struct InjectSpec {
  std::string name;
  InjectAction action = InjectAction::kDrop;
  std::string link;  // a direction: A-B
  // Filters: a packet matches if all that are given match.
  std::optional<uint32_t> psn, qpn;  // `qpn`: the receiver's, of the BTH
  std::optional<uint16_t> source_port;
  std::optional<uint8_t> dscp, priority;
  std::optional<std::bitset<256>> opcodes;
  std::optional<uint8_t> syndrome;  // upper three bits of an AETH's syndrome
  uint64_t skip = 0;                // matching packets to skip
  double probability = 1;           // for each further match
  uint64_t count = 1;               // number of matches; 0: unlimited
  TimeNs delay = 0;
  uint32_t by = 1;
  CorruptPart part = CorruptPart::kPayload;
  // kDown and kUp: act when the fault is armed instead of when a packet comes.
  bool at_once = false;
};

// EINVAL or ERANGE with the reason for a malformed line; the link need not exist.
Result<InjectSpec> parse_inject(std::string_view line);

// An armed fault. Any thread may use `fired` and watch().
struct InjectedFault {
  // `set_state` brings the direction up or down; for kDown and kUp.
  InjectedFault(InjectSpec what, uint64_t seed, std::function<void(bool up)> set_state);
  const InjectSpec spec;
  Counter fired;
  // Called on the core's thread when the fault first fires after a watch(). Set before the fault is
  // armed.
  std::function<void()> on_fired;
  // A reader of `fired` after watch() misses nothing: on_fired() is called for every later event.
  void watch() {
    watched_.store(true, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }

 private:
  friend class Injector;
  void happened() {
    fired.add();
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!watched_.load(std::memory_order_relaxed)) return;
    if (watched_.exchange(false, std::memory_order_relaxed) && on_fired) on_fired();
  }
  void rise(TimeNs now);
  bool spent() const { return spec.count != 0 && fired.get() >= spec.count; }
  Rng rng_;
  uint64_t seen_ = 0;  // matching packets
  std::function<void(bool up)> set_state_;
  Event rise_;
  std::atomic<bool> watched_{false};
};
using FaultPtr = std::shared_ptr<InjectedFault>;

class Injector final : public LinkSink {
 public:
  explicit Injector(Link& link);
  ~Injector() override;

  // Faults examine a packet in the order in which they were armed, until one consumes it.
  void arm(const FaultPtr& fault);
  // No effect if the fault is not armed. Packets that it holds are delivered at their time.
  void disarm(const FaultPtr& fault);
  // Disarms all faults and releases held packets.
  void clear();

  void receive(Packet* packet, TimeNs now) override;

 private:
  // A packet to be delivered later.
  struct Held {
    Injector* owner;
    PacketPtr packet;  // null: unused
    uint32_t qpn = 0;
    uint32_t left = 0;  // packets that must pass first; 0: only time counts
    Event due;
    explicit Held(Injector* o) : owner(o), due(event_of<&Held::on_due>(this)) {}
    void on_due(TimeNs now);
  };

  void apply(InjectedFault& fault, PacketPtr& packet);
  void corrupt(InjectedFault& fault, Packet& packet);
  Held& hold(PacketPtr&& packet, TimeNs delay);
  void pass(PacketPtr&& packet, TimeNs now);
  void pass_on(PacketPtr packet, TimeNs now);
  void settle();

  Link& link_;
  Scheduler& scheduler_;
  LinkSink* next_ = nullptr;  // the far end while the injector is in place
  std::vector<FaultPtr> faults_;
  std::vector<std::unique_ptr<Held>> held_;
};

}  // namespace rocefs
