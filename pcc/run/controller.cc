#include "pcc/run/controller.h"

#include <utility>

#include "pcc/api/register_access.h"
#include "pcc/run/call.h"
#include "pcc/run/controller_state.h"

namespace rocefs {

PccController::PccController(uint64_t seed, PccLog log)
    : state_(std::make_unique<PccControllerState>(seed, std::move(log))) {}

PccController::~PccController() = default;

mango_status_e PccController::add(unsigned slot, PccAlgorithm algorithm) {
  if (InsidePcc::here()) return MANGO_STATUS_BAD_STATE;
  std::lock_guard guard(state_->control);
  PollersLocked locked(state_->run.get(), state_->pollers);
  std::string name = algorithm.name;
  mango_status_e status = state_->slots.add(slot, std::move(algorithm));
  if (status != MANGO_STATUS_OK) return status;
  if (state_->run) state_->run->forget_warnings(slot);
  std::lock_guard view(state_->view);
  state_->names[slot] = std::move(name);
  return MANGO_STATUS_OK;
}

mango_status_e PccController::remove(unsigned slot) {
  if (InsidePcc::here()) return MANGO_STATUS_BAD_STATE;
  std::lock_guard guard(state_->control);
  PollersLocked locked(state_->run.get(), state_->pollers);
  return state_->remove(slot);
}

mango_status_e PccController::add_parameter(unsigned slot, PccAlgorithm::Parameter parameter) {
  if (InsidePcc::here()) return MANGO_STATUS_BAD_STATE;
  std::lock_guard guard(state_->control);
  return state_->slots.add_parameter(slot, std::move(parameter));
}

mango_status_e PccController::limit_parameter(unsigned slot, std::string_view name, double min,
                                              double max) {
  if (InsidePcc::here()) return MANGO_STATUS_BAD_STATE;
  std::lock_guard guard(state_->control);
  return state_->slots.limit_parameter(slot, name, min, max);
}

const PccAlgorithm* PccController::algorithm(unsigned slot) const {
  std::lock_guard guard(state_->control);
  return state_->slots.at(slot);
}

std::optional<unsigned> PccController::find(std::string_view name) const {
  std::lock_guard guard(state_->control);
  return state_->slots.find(name);
}

std::optional<unsigned> PccController::free_slot() const {
  std::lock_guard guard(state_->control);
  return state_->slots.lowest_free();
}

bool PccController::any() const {
  std::lock_guard guard(state_->control);
  return state_->slots.lowest().has_value();
}

std::optional<unsigned> PccController::applied() const {
  std::lock_guard guard(state_->control);
  return state_->run ? state_->run->slot : state_->applied;
}

mango_status_e PccController::apply(unsigned slot) {
  if (slot >= MANGO_PCC_MAX_SLOTS) return MANGO_STATUS_INVALID_PARAM;
  if (InsidePcc::here()) return MANGO_STATUS_BAD_STATE;
  std::lock_guard guard(state_->control);
  if (!state_->slots.at(slot)) return MANGO_STATUS_NOT_FOUND;
  state_->applied = slot;
  if (!state_->run) return MANGO_STATUS_OK;
  PollersLocked locked(state_->run.get(), state_->pollers);
  state_->run->slot = slot;
  for (auto& poller : state_->pollers) {
    poller->for_each([&](PccQp& qp) {
      if (qp.slot() != slot) poller->apply(qp, slot);
    });
  }
  return MANGO_STATUS_OK;
}

mango_status_e PccController::apply(unsigned slot, std::span<const uint32_t> qpns) {
  if (slot >= MANGO_PCC_MAX_SLOTS) return MANGO_STATUS_INVALID_PARAM;
  if (InsidePcc::here()) return MANGO_STATUS_BAD_STATE;
  std::lock_guard guard(state_->control);
  if (!state_->slots.at(slot)) return MANGO_STATUS_NOT_FOUND;
  if (!state_->run) return MANGO_STATUS_BAD_STATE;
  PollersLocked locked(state_->run.get(), state_->pollers);
  // Includes queue pairs that became active a moment ago.
  for (auto& poller : state_->pollers) poller->scan();
  for (uint32_t qpn : qpns) {
    if (!state_->find(qpn)) return MANGO_STATUS_NOT_FOUND;
  }
  for (uint32_t qpn : qpns) {
    PccQp* qp = state_->find(qpn);
    if (qp->slot() != slot) state_->poller_of(qpn - ROCEFS_FIRST_QPN).apply(*qp, slot);
  }
  return MANGO_STATUS_OK;
}

mango_status_e PccController::set_interval(TimeNs interval) {
  if (interval <= 0) return MANGO_STATUS_INVALID_PARAM;
  if (InsidePcc::here()) return MANGO_STATUS_BAD_STATE;
  std::lock_guard guard(state_->control);
  PollersLocked locked(state_->run.get(), state_->pollers);
  TimeNs old = state_->interval.exchange(interval);
  for (auto& poller : state_->pollers) poller->change_interval(old);
  return MANGO_STATUS_OK;
}

TimeNs PccController::interval() const {
  return state_->interval;
}

mango_status_e PccController::begin(const rocefs_signals_page* signals,
                                    rocefs_control_page* control, unsigned pollers) {
  if (!signals || !control || pollers == 0 || pollers > MANGO_PCC_MAX_THREADS) {
    return MANGO_STATUS_INVALID_PARAM;
  }
  if (InsidePcc::here()) return MANGO_STATUS_BAD_STATE;
  std::lock_guard guard(state_->control);
  if (state_->run) return MANGO_STATUS_BAD_STATE;
  if (signals->version != ROCEFS_REGISTERS_VERSION) return MANGO_STATUS_NOT_SUPPORTED;
  std::optional<unsigned> slot = state_->applied ? state_->applied : state_->slots.lowest();
  if (!slot) return MANGO_STATUS_BAD_STATE;
  store_word(control->version, uint32_t{ROCEFS_REGISTERS_VERSION});
  auto run = std::make_unique<PccRun>(*signals, *control, pollers, state_->slots, *slot,
                                      state_->seed, state_->interval, state_->log);
  std::vector<std::unique_ptr<PccPoller>> all;
  for (unsigned index = 0; index < pollers; ++index) {
    all.push_back(std::make_unique<PccPoller>(*run, index));
    all.back()->scan();
  }
  std::lock_guard view(state_->view);
  state_->damage.reset();
  state_->run = std::move(run);
  state_->pollers = std::move(all);
  return MANGO_STATUS_OK;
}

void PccController::end() {
  std::lock_guard guard(state_->control);
  if (!state_->run) return;
  PccStatistics total = statistics();
  std::lock_guard view(state_->view);
  state_->earlier = total;
  state_->damage = state_->run->damage();
  state_->pollers.clear();
  state_->run.reset();
}

bool PccController::running() const {
  std::lock_guard view(state_->view);
  return state_->run != nullptr;
}

TimeNs PccController::poll(unsigned poller, TimeNs now) {
  return state_->pollers[poller]->poll(now);
}

}  // namespace rocefs
