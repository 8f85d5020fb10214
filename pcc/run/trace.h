// PccTrace: the rings of window changes and of calls in the owner's page. Any of the run's threads;
// a lone poller pays for no lock.
#pragma once

#include <cstddef>
#include <iterator>
#include <mutex>

#include "pcc/api/register_access.h"
#include "rdma/uapi/registers.h"

namespace rocefs {

class PccTrace {
 public:
  PccTrace(rocefs_control_page& page, bool shared) : page_(page), shared_(shared) {}

  void add(const rocefs_trace_entry& entry) {
    std::unique_lock guard = locked();
    uint64_t number = load_word(page_.traced);
    rocefs_trace_entry& place = page_.trace[number % ROCEFS_TRACE_ENTRIES];
    store_word(place.at_ns, entry.at_ns);
    store_word(place.qpn, entry.qpn);
    store_word(place.slot, entry.slot);
    store_word(place.old_window, entry.old_window);
    store_word(place.new_window, entry.new_window);
    store_word(place.cnps, entry.cnps);
    store_word(place.rtt_ns, entry.rtt_ns);
    announce(page_.traced, number + 1);
  }

  void add_call(const rocefs_call_entry& entry) {
    std::unique_lock guard = locked();
    uint64_t number = load_word(page_.calls_traced);
    rocefs_call_entry& place = page_.calls[number % ROCEFS_CALL_ENTRIES];
    for (size_t i = 0; i < std::size(place.words); ++i) announce(place.words[i], entry.words[i]);
    announce(page_.calls_traced, number + 1);
  }

 private:
  std::unique_lock<std::mutex> locked() {
    return shared_ ? std::unique_lock(lock_) : std::unique_lock(lock_, std::defer_lock);
  }

  std::mutex lock_;
  rocefs_control_page& page_;
  const bool shared_;  // by several pollers
};

}  // namespace rocefs
