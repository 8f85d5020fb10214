// What a controller's slots hold, for people.
#pragma once

#include <vector>

#include "pcc/card/backend.h"
#include "pcc/run/controller.h"

namespace rocefs {

// The slot holds one.
PccAlgorithmInfo describe(const PccController& controller, unsigned slot);
// Those of all slots that do.
std::vector<PccAlgorithmInfo> describe_all(const PccController& controller);

}  // namespace rocefs
