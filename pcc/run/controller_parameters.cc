// Parameters of a slot and of its queue pairs: walk, update, read, and keep when another algorithm
// takes the slot.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "pcc/api/parameter.h"
#include "pcc/run/call.h"
#include "pcc/run/controller.h"
#include "pcc/run/controller_state.h"
#include "pcc/run/parameter_change.h"

namespace rocefs {
namespace {

Error no_algorithm(unsigned slot) {
  return errorf(ENOENT, "there is no algorithm in slot {}", slot);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_bounded(const PccAlgorithm::Parameter& parameter) {
  return parameter.min > -kInfinity || parameter.max < kInfinity;
}

// False for a value that is no number, where there are bounds.
bool is_inside(const PccAlgorithm::Parameter& parameter, const uint8_t* block) {
  const double number = parameter_number(parameter.type, block + parameter.offset);
  return !is_bounded(parameter) || (number >= parameter.min && number <= parameter.max);
}

// Calls back for each parameter of a block. True if update() would take the values that it has
// then; else it is again as before.
bool walk_block(const PccAlgorithm& algorithm, mango_pcc_param_walk_fn callback, void* user_data,
                uint8_t* block) {
  const std::vector<uint8_t> before(block, block + algorithm.initial.size());
  for (const PccAlgorithm::Parameter& parameter : algorithm.parameters) {
    callback(parameter.name.c_str(), parameter.type, block + parameter.offset, user_data);
  }
  const bool inside = std::all_of(algorithm.parameters.begin(), algorithm.parameters.end(),
                                  [&](const auto& one) { return is_inside(one, block); });
  if (inside && check_bounds(algorithm, block)) return true;
  std::copy(before.begin(), before.end(), block);
  return false;
}

}  // namespace

mango_status_e PccController::walk(unsigned slot, mango_pcc_param_walk_fn callback, void* user_data,
                                   unsigned mode) {
  if (!callback || slot >= MANGO_PCC_MAX_SLOTS) return MANGO_STATUS_INVALID_PARAM;
  if (InsidePcc::here()) return MANGO_STATUS_BAD_STATE;
  std::lock_guard guard(state_->control);
  PollersLocked locked(state_->run.get(), state_->pollers);
  PccAlgorithm* algorithm = state_->slots.at(slot);
  if (!algorithm) return MANGO_STATUS_NOT_FOUND;
  InsidePcc inside;
  auto walk = [&](uint8_t* block) { return walk_block(*algorithm, callback, user_data, block); };
  std::vector<PccQp*> qps = state_->running(slot);
  if (mode == 1) {
    bool good = walk(algorithm->initial.data());
    for (PccQp* qp : qps) good = walk(qp->change_parameters().data()) && good;
    return good ? MANGO_STATUS_OK : MANGO_STATUS_INVALID_PARAM;
  }
  // Copy: writes of the callback are discarded.
  const uint8_t* first = qps.empty() ? algorithm->initial.data() : qps[0]->parameters().data();
  ParameterBlock copy({first, algorithm->initial.size()});
  walk(copy.data());
  return MANGO_STATUS_OK;
}

Result<void> PccController::update(unsigned slot, std::span<const Change> changes) {
  if (InsidePcc::here()) return Error{EDEADLK, "an algorithm is being called"};
  std::lock_guard guard(state_->control);
  PccAlgorithm* algorithm = state_->slots.at(slot);
  if (!algorithm) return no_algorithm(slot);
  Result<std::vector<ParameterPlace>> places = parse_changes(*algorithm, changes);
  if (!places) return places.error();
  if (Result<void> checked = check_bounds(*algorithm, *places); !checked) return checked;
  PollersLocked locked(state_->run.get(), state_->pollers);
  for (const Change& change : changes) algorithm->settings[change.name] = change.value;
  write_places(*places, algorithm->initial.data());
  for (PccQp* qp : state_->running(slot)) write_places(*places, qp->change_parameters().data());
  return {};
}

mango_status_e PccController::replace(unsigned slot, PccAlgorithm algorithm) {
  if (InsidePcc::here()) return MANGO_STATUS_BAD_STATE;
  std::lock_guard guard(state_->control);
  PollersLocked locked(state_->run.get(), state_->pollers);
  std::vector<PccQp*> qps = state_->running(slot);
  mango_status_e status = state_->slots.exchange(slot, algorithm);
  if (status != MANGO_STATUS_OK) return status;
  const PccAlgorithm& before = algorithm;
  PccAlgorithm& now = *state_->slots.at(slot);
  for (const auto& [name, value] : before.settings) {
    const Change change{name, value};
    Result<std::vector<ParameterPlace>> places = parse_changes(now, {&change, 1});
    if (!places) {
      state_->log(MANGO_LOG_LEVEL_WARN, fmt::format("{} does not keep {}={}: {}", now.name, name,
                                                    value, places.error().reason));
      continue;
    }
    now.settings[name] = value;
    write_places(*places, now.initial.data());
  }
  if (state_->run) state_->run->forget_warnings(slot);
  InsidePcc inside;
  bool keeps = now.keep != nullptr;
  for (PccQp* qp : qps) {
    const uint8_t* block = qp->parameters().data();
    const std::vector<uint8_t> old(block, block + before.initial.size());
    PccPoller& poller = state_->poller_of(qp->qpn() - ROCEFS_FIRST_QPN);
    poller.apply(*qp, slot);
    if (!keeps) continue;
    try {
      now.keep(old.data(), old.size(), qp->change_parameters().data(), now.initial.size());
    } catch (...) {
      state_->log(MANGO_LOG_LEVEL_WARN,
                  fmt::format("{}: its mango_pcc_algo_keep threw an exception: "
                              "state begins anew from QP {} on",
                              now.name, qp->qpn()));
      poller.apply(*qp, slot);
      keeps = false;
    }
  }
  return status;
}

Result<std::string> PccController::value(unsigned slot, std::string_view name) const {
  if (InsidePcc::here()) return Error{EDEADLK, "an algorithm is being called"};
  std::lock_guard guard(state_->control);
  PccAlgorithm* algorithm = state_->slots.at(slot);
  if (!algorithm) return no_algorithm(slot);
  const PccAlgorithm::Parameter* parameter = find_parameter(*algorithm, name);
  if (!parameter) return no_parameter(*algorithm, name);
  PollersLocked locked(state_->run.get(), state_->pollers);
  std::vector<PccQp*> qps = state_->running(slot);
  const uint8_t* block = qps.empty() ? algorithm->initial.data() : qps[0]->parameters().data();
  return format_parameter(parameter->type, block + parameter->offset);
}

}  // namespace rocefs
