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

// Core thread, but for what says otherwise.
class Registers {
 public:
  // Of the device of that name. Both outlive it.
  Registers(const std::string& name, Cfr& cfr) : name_(name), cfr_(cfr) {}

  // Before the engine starts, once. Until then there are none, and windows cannot be taken. ENOMEM,
  // EMFILE.
  Result<void> open(ClockMode mode);
  // Any thread, after open().
  const std::shared_ptr<SharedMemory>& signals() const { return signals_; }
  // Before the engine starts: `changed` runs when a queue pair becomes active, or ceases to be.
  void on_change(std::function<void()> changed) { listeners_.push_back(std::move(changed)); }
  // What engine time is; before the engine starts, too.
  void set_clock(const ClockReading& clock);

  // Every window of the device is what `owner` says in the page that it gets, and CFR is off, until
  // it gives them back or the device leaves. EBUSY when they are another's; EOPNOTSUPP before
  // open().
  Result<std::shared_ptr<SharedMemory>> take(WindowController& owner);
  // Nothing happens when they are another's.
  void give_back(const WindowController& owner);

  // For queue pairs: the lines of one, null where there are none.
  rocefs_qp_signals* signals_of(uint32_t qpn) const;
  const rocefs_qp_control* control_of(uint32_t qpn) const;
  // It becomes active: its line is cleared first, and then, when the queue pair looks at it, told.
  void prepare(uint32_t qpn, const QpOwner& program);
  void activate(uint32_t qpn);
  // Again is harmless.
  void deactivate(uint32_t qpn);
  // A round trip that somebody measured, and what one takes at the moment, by all that were.
  void note_rtt(TimeNs rtt);
  TimeNs usual_rtt() const { return usual_rtt_; }

 private:
  void note_change(rocefs_signals_page& page, int32_t more);

  // Before the first that is measured (80 octets at 16 us are the paper's 40 Mb/s).
  static constexpr TimeNs kFirstRtt = 16 * kMicrosecond;

  const std::string& name_;
  Cfr& cfr_;
  std::shared_ptr<SharedMemory> signals_;
  std::shared_ptr<SharedMemory> control_;  // while somebody owns the windows
  std::vector<std::function<void()>> listeners_;
  TimeNs usual_rtt_ = kFirstRtt;
};

}  // namespace rocefs
