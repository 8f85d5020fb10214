// Queries that do not wait for an algorithm to return.
#include "pcc/api/register_access.h"
#include "pcc/run/controller.h"
#include "pcc/run/controller_state.h"

namespace rocefs {
namespace {

// Lines of an active queue pair; `counted`: the run knows it already.
struct Lines {
  const rocefs_qp_signals& signals;
  const rocefs_qp_control& control;
  uint32_t window;
  bool counted;
};

bool is_active(const rocefs_signals_page& page, uint32_t line) {
  return (load_word(page.active[line / 64]) >> line % 64 & 1) &&
         load_announced(page.qps[line].generation) % 2 == 1;
}

std::optional<Lines> lines_of(const PccRun* run, uint32_t qpn) {
  if (!run || qpn < ROCEFS_FIRST_QPN || qpn - ROCEFS_FIRST_QPN >= ROCEFS_MAX_QPS) return {};
  uint32_t line = qpn - ROCEFS_FIRST_QPN;
  if (!is_active(run->signals, line)) return {};
  const rocefs_qp_signals& signals = run->signals.qps[line];
  const rocefs_qp_control& control = run->control.qps[line];
  uint64_t word = load_announced(control.window);
  return Lines{signals, control, static_cast<uint32_t>(word),
               word >> 32 == load_word(signals.generation)};
}

}  // namespace

mango_status_e PccController::cnp_count(uint32_t qpn, uint64_t* count) const {
  std::lock_guard view(state_->view);
  std::optional<Lines> lines = lines_of(state_->run.get(), qpn);
  if (!lines) return MANGO_STATUS_NOT_FOUND;
  *count =
      lines->counted ? load_word(lines->signals.cnps) - load_word(lines->control.cnp_baseline) : 0;
  return MANGO_STATUS_OK;
}

mango_status_e PccController::window(uint32_t qpn, uint32_t* window) const {
  std::lock_guard view(state_->view);
  std::optional<Lines> lines = lines_of(state_->run.get(), qpn);
  if (!lines) return MANGO_STATUS_NOT_FOUND;
  *window = lines->counted ? lines->window : ROCEFS_NO_WINDOW;
  return MANGO_STATUS_OK;
}

mango_status_e PccController::calls(uint32_t qpn, uint32_t* count) const {
  std::lock_guard view(state_->view);
  std::optional<Lines> lines = lines_of(state_->run.get(), qpn);
  if (!lines) return MANGO_STATUS_NOT_FOUND;
  *count = lines->counted ? load_word(lines->control.calls) : 0;
  return MANGO_STATUS_OK;
}

size_t PccController::active(uint32_t* qpns, size_t most) const {
  std::lock_guard view(state_->view);
  size_t count = 0;
  for (uint32_t line = 0; state_->run && line < ROCEFS_MAX_QPS && count < most; ++line) {
    if (is_active(state_->run->signals, line)) qpns[count++] = line + ROCEFS_FIRST_QPN;
  }
  return count;
}

PccController::Call PccController::current_call(unsigned poller) const {
  std::lock_guard view(state_->view);
  if (poller >= state_->pollers.size()) return {};
  PccPoller::Current current = state_->pollers[poller]->current();
  if (current.number == 0) return {};
  return {current.number, current.qpn, state_->names[current.slot]};
}

void PccController::note_slow_call(unsigned poller, uint64_t number) {
  std::lock_guard view(state_->view);
  if (poller >= state_->pollers.size()) return;
  if (state_->pollers[poller]->current().number == number) state_->run->note_slow_call();
}

PccStatistics PccController::statistics() const {
  std::lock_guard view(state_->view);
  PccStatistics total = state_->earlier;
  for (const auto& poller : state_->pollers) {
    total.calls += poller->calls();
    total.cnp_reads += poller->reads().cnps.get();
    total.rtt_reads += poller->reads().rtts.get();
  }
  return total;
}

std::optional<std::string> PccController::damage() const {
  std::lock_guard view(state_->view);
  return state_->run ? state_->run->damage() : state_->damage;
}

}  // namespace rocefs
