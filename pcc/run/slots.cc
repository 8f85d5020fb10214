#include "pcc/run/slots.h"

#include <algorithm>
#include <utility>

#include "core/base/text.h"
#include "pcc/api/parameter.h"
#include "pcc/api/rocefs_pcc.h"

namespace rocefs {
namespace {

constexpr uint32_t kMetrics =
    MANGO_PCC_METRIC_CNP | MANGO_PCC_METRIC_RTT | ROCEFS_PCC_METRIC_EVENTS | ROCEFS_PCC_METRIC_INT;

}  // namespace

mango_status_e check_parameter(const PccAlgorithm& algorithm,
                               const PccAlgorithm::Parameter& parameter) {
  size_t size = parameter_size(parameter.type), whole = algorithm.initial.size();
  if (size == 0 || size > whole || parameter.offset > whole - size) {
    return MANGO_STATUS_INVALID_PARAM;
  }
  if (!valid_entry_name(parameter.name)) return MANGO_STATUS_INVALID_PARAM;
  double value = parameter_number(parameter.type, &algorithm.initial[parameter.offset]);
  if (value < parameter.min || value > parameter.max) return MANGO_STATUS_INVALID_PARAM;
  auto same = [&](const PccAlgorithm::Parameter& other) { return other.name == parameter.name; };
  const auto& others = algorithm.parameters;
  if (std::any_of(others.begin(), others.end(), same)) return MANGO_STATUS_ALREADY_OPENED;
  return others.size() < MANGO_PCC_MAX_PARAMS ? MANGO_STATUS_OK : MANGO_STATUS_LIMIT;
}

bool known_metrics(uint32_t metrics) {
  bool hops_alone = (metrics & ROCEFS_PCC_METRIC_INT) && !(metrics & ROCEFS_PCC_METRIC_EVENTS);
  return !(metrics & ~kMetrics) && !hops_alone;
}

PccAlgorithm* PccSlots::at(unsigned slot) {
  return slot < slots_.size() && slots_[slot] ? &*slots_[slot] : nullptr;
}

mango_status_e PccSlots::add(unsigned slot, PccAlgorithm algorithm) {
  if (slot >= slots_.size()) return MANGO_STATUS_INVALID_PARAM;
  if (!algorithm.event && !algorithm.legacy) return MANGO_STATUS_INVALID_PARAM;
  if (algorithm.event && !known_metrics(algorithm.metrics)) return MANGO_STATUS_INVALID_PARAM;
  if (algorithm.initial.size() > MANGO_PCC_MAX_PARAM_SIZE) return MANGO_STATUS_LIMIT;
  if (slots_[slot]) return MANGO_STATUS_ALREADY_OPENED;
  if (!algorithm.name.empty() && find(algorithm.name)) return MANGO_STATUS_ALREADY_OPENED;
  std::vector<PccAlgorithm::Parameter> parameters = std::exchange(algorithm.parameters, {});
  for (auto& parameter : parameters) {
    mango_status_e status = check_parameter(algorithm, parameter);
    if (status != MANGO_STATUS_OK) return status;
    algorithm.parameters.push_back(std::move(parameter));
  }
  slots_[slot] = std::move(algorithm);
  return MANGO_STATUS_OK;
}

mango_status_e PccSlots::exchange(unsigned slot, PccAlgorithm& algorithm) {
  PccAlgorithm* present = at(slot);
  if (!present) return MANGO_STATUS_NOT_FOUND;
  if (present->name != algorithm.name) return MANGO_STATUS_INVALID_PARAM;
  PccAlgorithm before = std::move(*present);
  slots_[slot].reset();
  mango_status_e status = add(slot, std::move(algorithm));
  if (status == MANGO_STATUS_OK) {
    algorithm = std::move(before);
  } else {
    slots_[slot] = std::move(before);
  }
  return status;
}

mango_status_e PccSlots::remove(unsigned slot) {
  if (slot >= slots_.size()) return MANGO_STATUS_INVALID_PARAM;
  if (!slots_[slot]) return MANGO_STATUS_NOT_FOUND;
  slots_[slot].reset();
  return MANGO_STATUS_OK;
}

mango_status_e PccSlots::add_parameter(unsigned slot, PccAlgorithm::Parameter parameter) {
  if (slot >= slots_.size()) return MANGO_STATUS_INVALID_PARAM;
  if (!slots_[slot]) return MANGO_STATUS_NOT_FOUND;
  mango_status_e status = check_parameter(*slots_[slot], parameter);
  if (status == MANGO_STATUS_OK) slots_[slot]->parameters.push_back(std::move(parameter));
  return status;
}

mango_status_e PccSlots::limit_parameter(unsigned slot, std::string_view name, double min,
                                         double max) {
  PccAlgorithm* algorithm = at(slot);
  if (!algorithm) return MANGO_STATUS_NOT_FOUND;
  for (PccAlgorithm::Parameter& parameter : algorithm->parameters) {
    if (parameter.name != name) continue;
    double value = parameter_number(parameter.type, &algorithm->initial[parameter.offset]);
    if (!(min <= value && value <= max)) return MANGO_STATUS_INVALID_PARAM;
    parameter.min = min;
    parameter.max = max;
    return MANGO_STATUS_OK;
  }
  return MANGO_STATUS_NOT_FOUND;
}

std::optional<unsigned> PccSlots::find(std::string_view name) const {
  for (unsigned slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot] && slots_[slot]->name == name) return slot;
  }
  return std::nullopt;
}

std::optional<unsigned> PccSlots::lowest() const {
  for (unsigned slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot]) return slot;
  }
  return std::nullopt;
}

std::optional<unsigned> PccSlots::lowest_free() const {
  for (unsigned slot = 0; slot < slots_.size(); ++slot) {
    if (!slots_[slot]) return slot;
  }
  return std::nullopt;
}

}  // namespace rocefs
