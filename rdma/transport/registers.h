// Registers: the register pages of a device, seen from the engine (rdma/uapi/registers.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/takeover/shared_memory.h"
#include "rdma/cc/cfr.h"
#include "rdma/packet/verbs.h"
#include "rdma/uapi/registers.h"

namespace rocefs {

// Core thread, except where stated.
class Registers {
 public:
  // Registers of the device `name`. Both arguments outlive them.
  Registers(const std::string& name, Cfr& cfr) : name_(name), cfr_(cfr) {}

  // Creates the pages, once, before the engine starts. Until then there are none, and windows
  // cannot be taken. ENOMEM, EMFILE.
  Result<void> open(ClockMode mode);
  // Page of signals. Any thread, after open().
  const std::shared_ptr<SharedMemory>& signals() const { return signals_; }
  // Adds a listener, before the engine starts: `changed` runs when a queue pair becomes active, or
  // ceases to be.
  void on_change(std::function<void()> changed) { listeners_.push_back(std::move(changed)); }
  // Sets a listener, before the engine starts: `added` runs when an event was added.
  void on_event(std::function<void()> added) { event_added_ = std::move(added); }
  // Publishes the engine's clock; allowed before the engine starts, too.
  void set_clock(const ClockReading& clock);

  // Gives `owner` a page in which it sets every window of the device; CFR is off until it gives
  // them back or the device leaves. EBUSY when the windows have an owner; EOPNOTSUPP before open().
  Result<std::shared_ptr<SharedMemory>> take(WindowController& owner);
  // Ends the ownership; no effect when the windows have another owner.
  void give_back(const WindowController& owner);

  // Lines of a queue pair; null where there are none.
  rocefs_qp_signals* signals_of(uint32_t qpn) const;
  const rocefs_qp_control* control_of(uint32_t qpn) const;
  // Activation: prepare() clears the line, the queue pair reads it, and activate() publishes it.
  void prepare(uint32_t qpn, const QpOwner& program);
  void activate(uint32_t qpn);
  // Marks the queue pair inactive. A second call has no effect.
  void deactivate(uint32_t qpn);
  // Adds an event to the ring, which readers follow.
  void add_event(const rocefs_qp_event& event);
  // Adds a measured round trip to the average; usual_rtt() is the average.
  void note_rtt(TimeNs rtt);
  TimeNs usual_rtt() const { return usual_rtt_; }

 private:
  void note_change(rocefs_signals_page& page, int32_t more);

  // Average before the first measurement (80 octets in 16 us are the paper's 40 Mb/s).
  static constexpr TimeNs kFirstRtt = 16 * kMicrosecond;

  const std::string& name_;
  Cfr& cfr_;
  std::shared_ptr<SharedMemory> signals_;
  std::shared_ptr<SharedMemory> control_;  // while the windows have an owner
  std::vector<std::function<void()>> listeners_;
  std::function<void()> event_added_;
  TimeNs usual_rtt_ = kFirstRtt;
};

}  // namespace rocefs
