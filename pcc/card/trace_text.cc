#include "pcc/card/trace_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <vector>

#include "rdma/uapi/registers.h"

namespace rocefs {
namespace {

uint64_t written(rocefs_control_page& page) {
  return std::atomic_ref<uint64_t>(page.traced).load(std::memory_order_acquire);
}

uint64_t oldest_of(uint64_t end) {
  return end - std::min<uint64_t>(end, ROCEFS_TRACE_ENTRIES);
}

// Skips entries that are overwritten during the copy.
std::vector<rocefs_trace_entry> entries_of(rocefs_control_page& page) {
  std::vector<rocefs_trace_entry> entries;
  uint64_t end = written(page), first = oldest_of(end);
  entries.reserve(end - first);
  for (uint64_t n = first; n < end; ++n) {
    entries.push_back(page.trace[n % ROCEFS_TRACE_ENTRIES]);
  }
  uint64_t gone = std::clamp(oldest_of(written(page)), first, end) - first;
  entries.erase(entries.begin(), entries.begin() + static_cast<ptrdiff_t>(gone));
  return entries;
}

// Kind of change: only changes are traced.
std::string_view event_of(const rocefs_trace_entry& entry) {
  return entry.new_window < entry.old_window ? "cut" : "raise";
}

}  // namespace

std::string trace_text(const SharedMemory* control,
                       const std::function<std::string_view(unsigned slot)>& name_of) {
  std::string text = "time_ns,qp,event,old_window,new_window,cnp,rtt_ns,algo\n";
  if (!control) return text;
  for (const rocefs_trace_entry& entry : entries_of(*control->at<rocefs_control_page>(0))) {
    fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{},{},{}\n", entry.at_ns, entry.qpn,
                   event_of(entry), entry.old_window, entry.new_window, entry.cnps, entry.rtt_ns,
                   name_of(entry.slot));
  }
  return text;
}

}  // namespace rocefs
