// Injector: scripted faults of one direction of a cable. It stands between a link and its far end
// while a fault is armed there, or a packet held; otherwise packets do not meet it.
//
// On the core's thread.
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
  kDuplicate,  // the copy comes `delay` behind the packet
  kReorder,    // held until `by` packets for the same queue pair have passed, `delay` at most
  kCorrupt,    // one bit, drawn by chance
  kDelay,      // held for `delay`; what comes behind overtakes it
  kMark,       // congestion experienced, where the transport is capable of ECN
  kDown,  // the direction goes down, the packet with it; up again after `delay` if there is one
  kUp,
};

enum class CorruptPart : uint8_t {
  kPayload,
  kIcrc,
  kHeader,    // destination QPN and PSN
  kReserved,  // the six bits of the BTH that the ICRC leaves out
};

// What `echo NAME ACTION LINK KEY=VALUE… > inject/add` says.
struct InjectSpec {
  std::string name;
  InjectAction action = InjectAction::kDrop;
  std::string link;  // a direction: A-B
  // Which packets: those for which all that is said holds.
  std::optional<uint32_t> psn, qpn;  // of the BTH: the receiver's QPN
  std::optional<uint16_t> source_port;
  std::optional<uint8_t> dscp, priority;
  std::optional<std::bitset<256>> opcodes;
  std::optional<uint8_t> syndrome;  // of an AETH: its upper three bits
  uint64_t skip = 0;                // of those
  double probability = 1;           // for each behind them
  uint64_t count = 1;               // of how many; 0: for ever
  TimeNs delay = 0;
  uint32_t by = 1;
  CorruptPart part = CorruptPart::kPayload;
  // kDown and kUp: when the fault is armed, and not when a packet comes.
  bool at_once = false;
};

// EINVAL or ERANGE with the reason for a malformed line; whether there is such a link is another
// question.
Result<InjectSpec> parse_inject(std::string_view line);

// One fault. `fired` and watch() are for any thread.
struct InjectedFault {
  // `set_state` brings the direction up or down; for kDown and kUp.
  InjectedFault(InjectSpec what, uint64_t seed, std::function<void(bool up)> set_state);
  const InjectSpec spec;
  Counter fired;
  // Called on the core's thread when the fault happens for the first time after a watch(). Set
  // before the fault is armed.
  std::function<void()> on_fired;
  // Who reads `fired` behind this misses nothing: on_fired() is called for all that comes later.
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
  uint64_t seen_ = 0;  // packets that matched
  std::function<void(bool up)> set_state_;
  Event rise_;
  std::atomic<bool> watched_{false};
};
using FaultPtr = std::shared_ptr<InjectedFault>;

class Injector final : public LinkSink {
 public:
  Injector(Link& link, Scheduler& scheduler, PacketPool& pool);
  ~Injector() override;

  // Faults look at a packet in the order in which they were armed, until one takes it.
  void arm(const FaultPtr& fault);
  // Nothing if it is not armed. What it holds comes at its time.
  void disarm(const FaultPtr& fault);
  // Disarms all and releases what is held.
  void clear();

  void receive(Packet* packet, TimeNs now) override;

 private:
  // A packet that comes later.
  struct Held {
    Injector* owner;
    Packet* packet = nullptr;  // null: free to be used again
    uint32_t qpn = 0;
    uint32_t left = 0;  // packets that must pass before; 0: the time alone counts
    Event due;
    explicit Held(Injector* o) : owner(o), due(event_of<&Held::on_due>(this)) {}
    void on_due(TimeNs now);
  };

  bool take(InjectedFault& fault, Packet* packet);
  void corrupt(InjectedFault& fault, Packet* packet);
  Held& hold(Packet* packet, TimeNs delay);
  void pass(Packet* packet, TimeNs now);
  void settle();

  Link& link_;
  Scheduler& scheduler_;
  PacketPool& pool_;
  LinkSink* next_ = nullptr;  // the far end while this stands before it
  std::vector<FaultPtr> faults_;
  std::vector<std::unique_ptr<Held>> held_;
};

}  // namespace rocefs
