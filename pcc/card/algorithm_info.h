// Text form of a controller's slots.
#pragma once

#include <vector>

#include "pcc/card/backend.h"
#include "pcc/run/controller.h"

namespace rocefs {

// Precondition: the slot is in use.
// Describes an algorithm that is in no slot yet: parameters have their initial values.
PccAlgorithmInfo describe(const PccAlgorithm& algorithm, unsigned slot);
PccAlgorithmInfo describe(const PccController& controller, unsigned slot);
// Descriptions of all slots in use.
std::vector<PccAlgorithmInfo> describe_all(const PccController& controller);

}  // namespace rocefs
