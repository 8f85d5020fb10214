// PccController: the algorithms that one owner of a device's windows has, and what they do: it
// calls them for each queue pair in turn. The same in a user's program, in mango-pccd and, under
// the virtual clock, in the engine. Sans-IO: time is an argument, and what it reads and writes are
// the register pages (rdma/uapi/registers.h).
//
// What is said of slots, parameters and statuses is as the API reference has it
// (pcc/api/libmango.h).
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
#include "pcc/run/statistics.h"
#include "rdma/uapi/registers.h"

namespace rocefs {

struct PccControllerState;

class PccController {
 public:
  PccController(uint64_t seed, PccLog log);
  ~PccController();

  // ---- Any thread, but not from within an algorithm ----

  mango_status_e add(unsigned slot, PccAlgorithm algorithm);
  // BUSY while it runs on some queue pair, or would on the next one. Where nothing runs it goes,
  // also if it is applied, and then none is.
  mango_status_e remove(unsigned slot);
  mango_status_e add_parameter(unsigned slot, PccAlgorithm::Parameter parameter);
  // Null for an empty slot. Until the next call that changes slots.
  const PccAlgorithm* algorithm(unsigned slot) const;
  std::optional<unsigned> find(std::string_view name) const;
  std::optional<unsigned> free_slot() const;
  // Whether some slot is not empty.
  bool any() const;
  // All queue pairs, those to come too; or these.
  mango_status_e apply(unsigned slot);
  mango_status_e apply(unsigned slot, std::span<const uint32_t> qpns);
  // That of queue pairs to come; none before the first apply(), but while it runs.
  std::optional<unsigned> applied() const;
  mango_status_e walk(unsigned slot, mango_pcc_param_walk_fn callback, void* user_data,
                      unsigned mode);
  // Text as people write it, into the parameter of the slot and of all its queue pairs: all of them
  // or none. An error says which and why: EINVAL, ERANGE, ENOENT.
  struct Change {
    std::string name, value;
  };
  Result<void> update(unsigned slot, std::span<const Change> changes);
  // As update() would take it; of the first queue pair that runs it, or the slot's.
  Result<std::string> value(unsigned slot, std::string_view name) const;
  // Between calls for one queue pair, in engine time.
  mango_status_e set_interval(TimeNs interval);
  TimeNs interval() const;

  // ---- A run ----

  // The pages outlive it. BAD_STATE when it runs already, or nothing can be run; NOT_SUPPORTED for
  // pages of another version.
  mango_status_e begin(const rocefs_signals_page* signals, rocefs_control_page* control,
                       unsigned pollers);
  // No poll() is under way, nor follows.
  void end();
  bool running() const;
  // Calls the algorithms of the queue pairs of that poller that are due at `now` (engine time);
  // when it wants to be called next, or when `changes` of the signals page has changed, whichever
  // comes first. kNever when it has none. One thread at a time for each poller.
  TimeNs poll(unsigned poller, TimeNs now);

  // ---- Queries; NOT_FOUND for a queue pair that is not active ----

  mango_status_e cnp_count(uint32_t qpn, uint64_t* count) const;
  mango_status_e window(uint32_t qpn, uint32_t* window) const;
  mango_status_e calls(uint32_t qpn, uint32_t* count) const;
  size_t active(uint32_t* qpns, size_t most) const;

  // For whoever watches over algorithms that do not return or spoil things. Any thread.
  struct Call {
    uint64_t number = 0;  // changes with each call; 0 when none is under way
    uint32_t qpn = 0;
    std::string algorithm;
  };
  Call current_call(unsigned poller) const;
  // Calls and reads of signals so far, of all pollers.
  PccStatistics statistics() const;
  // Why the run may not go on: an algorithm wrote past its parameters. Nothing while it may.
  std::optional<std::string> damage() const;

 private:
  const std::unique_ptr<PccControllerState> state_;
};

}  // namespace rocefs
