// PccSlots: the algorithms of a controller, with their parameters. The caller locks.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "pcc/api/algorithm.h"

namespace rocefs {

class PccSlots {
 public:
  mango_status_e add(unsigned slot, PccAlgorithm algorithm);
  // The same for a slot that is in use, by an algorithm of the same name. Returns that one in
  // `algorithm`.
  mango_status_e exchange(unsigned slot, PccAlgorithm& algorithm);
  // NOT_FOUND for an empty slot, INVALID_PARAM for one out of range.
  mango_status_e remove(unsigned slot);
  mango_status_e add_parameter(unsigned slot, PccAlgorithm::Parameter parameter);
  mango_status_e limit_parameter(unsigned slot, std::string_view name, double min, double max);

  PccAlgorithm* at(unsigned slot);
  const PccAlgorithm* at(unsigned slot) const { return const_cast<PccSlots*>(this)->at(slot); }
  std::optional<unsigned> find(std::string_view name) const;
  std::optional<unsigned> lowest() const;
  std::optional<unsigned> lowest_free() const;

 private:
  std::array<std::optional<PccAlgorithm>, MANGO_PCC_MAX_SLOTS> slots_;
};

// Metrics that an event-style algorithm may declare.
bool known_metrics(uint32_t metrics);

// OK if the parameter lies inside the algorithm's block and its name is unused.
mango_status_e check_parameter(const PccAlgorithm& algorithm,
                               const PccAlgorithm::Parameter& parameter);

}  // namespace rocefs
