// Transitions of each type of queue pair, and the attributes that each requires and allows, as the
// verbs manual lists them (ibv_modify_qp).
#pragma once

#include <cstdint>

#include "core/base/result.h"
#include "rdma/packet/verbs.h"

namespace rocefs {

// EINVAL with the reason when there is no such transition, or `mask` does not fit it.
Result<void> check_transition(QpType type, QpState from, QpState to, uint32_t mask);

// Attributes that the transition requires.
uint32_t required_attributes(QpType type, QpState from, QpState to);

}  // namespace rocefs
