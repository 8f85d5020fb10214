// PccSlots: the algorithms that a controller has, each with its parameters. Locked by whoever has
// it.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "pcc/api/algorithm.h"

namespace rocefs {

class PccSlots {
 public:
  mango_status_e add(unsigned slot, PccAlgorithm algorithm);
  // NOT_FOUND, INVALID_PARAM: as it says.
  mango_status_e remove(unsigned slot);
  mango_status_e add_parameter(unsigned slot, PccAlgorithm::Parameter parameter);

  PccAlgorithm* at(unsigned slot);
  const PccAlgorithm* at(unsigned slot) const { return const_cast<PccSlots*>(this)->at(slot); }
  std::optional<unsigned> find(std::string_view name) const;
  std::optional<unsigned> lowest() const;
  std::optional<unsigned> lowest_free() const;

 private:
  std::array<std::optional<PccAlgorithm>, MANGO_PCC_MAX_SLOTS> slots_;
};

// OK when the parameter can belong to an algorithm of so many octets, beside those it has.
mango_status_e check_parameter(const PccAlgorithm& algorithm,
                               const PccAlgorithm::Parameter& parameter);

}  // namespace rocefs
