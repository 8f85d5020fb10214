#include "pcc/card/qp_reading.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "core/base/text.h"

namespace rocefs {
namespace {

// Loads a word that another thread or process writes at the same time.
template <class T>
T load(T& word) {
  return std::atomic_ref<T>(word).load(std::memory_order_acquire);
}

void read_control(rocefs_qp_control& line, QpReading& reading) {
  uint64_t window = load(line.window);
  if (window >> 32 != reading.generation) return;
  reading.owned = true;
  reading.window = static_cast<uint32_t>(window);
  reading.slot = load(line.slot);
  reading.calls = load(line.calls);
  reading.rtt_timeouts = load(line.rtt_timeouts);
  reading.late_calls = load(line.late_calls);
  uint64_t baseline = load(line.cnp_baseline);
  reading.cnps -= std::min(baseline, reading.cnps);
}

}  // namespace

std::optional<QpReading> read_qp(const SharedMemory& signals, const SharedMemory* control,
                                 uint32_t qpn) {
  uint32_t number = qpn - ROCEFS_FIRST_QPN;
  if (qpn < ROCEFS_FIRST_QPN || number >= ROCEFS_MAX_QPS) return std::nullopt;
  rocefs_qp_signals& line = signals.at<rocefs_signals_page>(0)->qps[number];
  QpReading reading;
  reading.qpn = qpn;
  reading.generation = load(line.generation);
  if (reading.generation % 2 == 0) return std::nullopt;
  reading.pid = load(line.pid);
  for (char& letter : line.comm) {
    char now = load(letter);
    if (now == '\0') break;
    reading.comm += now;
  }
  reading.comm = in_one_line(std::move(reading.comm));
  reading.rtt_ns = load(line.rtt_ns);
  reading.rate_bps = load(line.rate_bps);
  reading.cnps = load(line.cnps);
  reading.window = load(line.window);
  if (control) read_control(control->at<rocefs_control_page>(0)->qps[number], reading);
  if (load(line.generation) != reading.generation)
    return std::nullopt;  // reused by another queue pair
  return reading;
}

std::vector<ActiveQp> active_qps(const SharedMemory& signals) {
  std::vector<ActiveQp> active;
  auto& page = *signals.at<rocefs_signals_page>(0);
  for (uint32_t word = 0; word < std::size(page.active); ++word) {
    for (uint64_t bits = load(page.active[word]); bits != 0; bits &= bits - 1) {
      uint32_t number = word * 64 + static_cast<uint32_t>(std::countr_zero(bits));
      uint32_t generation = load(page.qps[number].generation);
      if (generation % 2 != 0) active.push_back({number + ROCEFS_FIRST_QPN, generation});
    }
  }
  return active;
}

std::vector<QpReading> read_active_qps(const SharedMemory& signals, const SharedMemory* control) {
  std::vector<QpReading> readings;
  for (ActiveQp active : active_qps(signals)) {
    std::optional<QpReading> qp = read_qp(signals, control, active.qpn);
    if (qp) readings.push_back(std::move(*qp));
  }
  return readings;
}

}  // namespace rocefs
