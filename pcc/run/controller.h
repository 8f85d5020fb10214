// PccController: the algorithms of one owner of a device's windows. Calls them for each queue pair
// in turn; used alike in a user's program, in mango-pccd and, under the virtual clock, in the
// engine. Sans-IO: time is an argument, input and output are the register pages
// (rdma/uapi/registers.h).
//
// Slots, parameters and statuses follow the API reference (pcc/api/libmango.h).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/time.h"
#include "pcc/api/algorithm.h"
#include "pcc/api/libmango.h"
#include "pcc/run/parameter_change.h"
#include "pcc/run/statistics.h"
#include "rdma/uapi/registers.h"

namespace rocefs {

struct PccControllerState;

class PccController {
 public:
  PccController(uint64_t seed, PccLog log);
  ~PccController();

  // ---- Any thread, not from within an algorithm ----

  mango_status_e add(unsigned slot, PccAlgorithm algorithm);
  // BUSY while a queue pair runs it, or the next one would. Without a run an applied algorithm can
  // be removed too; none is applied then.
  mango_status_e remove(unsigned slot);
  // Puts an algorithm of the same name in place of one; queue pairs that run it go on with the new
  // one, their windows kept. They start with its parameters, in which the values that update() set
  // are set again, those that it does not have or take excepted; `keep` has the last word.
  mango_status_e replace(unsigned slot, PccAlgorithm algorithm);
  mango_status_e add_parameter(unsigned slot, PccAlgorithm::Parameter parameter);
  // Bounds of values that are set from outside.
  mango_status_e limit_parameter(unsigned slot, std::string_view name, double min, double max);
  // Null for an empty slot. Valid until the next call that changes slots.
  const PccAlgorithm* algorithm(unsigned slot) const;
  std::optional<unsigned> find(std::string_view name) const;
  std::optional<unsigned> free_slot() const;
  // True if a slot is in use.
  bool any() const;
  // Applies to all present and future queue pairs, or to the given ones.
  mango_status_e apply(unsigned slot);
  mango_status_e apply(unsigned slot, std::span<const uint32_t> qpns);
  // Slot of future queue pairs; during a run always set, else empty before the first apply().
  std::optional<unsigned> applied() const;
  mango_status_e walk(unsigned slot, mango_pcc_param_walk_fn callback, void* user_data,
                      unsigned mode);
  // Sets parameters, given as text, of the slot and of all its queue pairs: all or none. The error
  // names the parameter and the reason: EINVAL, ENOENT.
  using Change = ParameterChange;
  Result<void> update(unsigned slot, std::span<const Change> changes);
  // Text that update() accepts; value of the first queue pair that runs the slot, else the slot's.
  Result<std::string> value(unsigned slot, std::string_view name) const;
  // Lines about an active queue pair: its algorithm, its present parameters as NAME=VALUE, and the
  // octets of its block that are no parameters, in hex. ENOENT.
  Result<std::string> dump(uint32_t qpn) const;
  // Time between two calls for one queue pair, in engine time.
  mango_status_e set_interval(TimeNs interval);
  TimeNs interval() const;

  // ---- A run ----

  // Starts a run. The pages outlive it. BAD_STATE: a run is active, or no slot is in use.
  // NOT_SUPPORTED: pages of another version.
  mango_status_e begin(const rocefs_signals_page* signals, rocefs_control_page* control,
                       unsigned pollers);
  // Ends the run. No poll() is in progress, and none follows.
  void end();
  bool running() const;
  // Calls the algorithms of this poller's queue pairs that are due at `now` (engine time). Returns
  // the time of the next call, kNever without queue pairs; call earlier if `changes` of the signals
  // page changes. One thread at a time for each poller.
  TimeNs poll(unsigned poller, TimeNs now);

  // ---- Queries; NOT_FOUND for an inactive queue pair ----

  mango_status_e cnp_count(uint32_t qpn, uint64_t* count) const;
  mango_status_e window(uint32_t qpn, uint32_t* window) const;
  mango_status_e calls(uint32_t qpn, uint32_t* count) const;
  size_t active(uint32_t* qpns, size_t most) const;

  // Call in progress, for a watchdog. Any thread.
  struct Call {
    uint64_t number = 0;  // changes with each call; 0 outside a call
    uint32_t qpn = 0;
    std::string algorithm;
  };
  Call current_call(unsigned poller) const;
  // Counts a call in the run's page as slow, if it has not returned yet. Any thread.
  void note_slow_call(unsigned poller, uint64_t number);
  // Totals of all pollers, earlier runs included.
  PccStatistics statistics() const;
  // Reason why the run is stopped: an algorithm wrote past its parameters. Empty if none.
  std::optional<std::string> damage() const;

 private:
  const std::unique_ptr<PccControllerState> state_;
};

}  // namespace rocefs
