// Which transitions a queue pair of each type has, and which attributes each must and may set, as
// the verbs manual lists them (ibv_modify_qp).
#pragma once

#include <cstdint>

#include "core/base/result.h"
#include "rdma/packet/verbs.h"

namespace rocefs {

// EINVAL with the reason when there is no such transition, or `mask` is not what it takes.
Result<void> check_transition(QpType type, QpState from, QpState to, uint32_t mask);

// What the transition must set.
uint32_t required_attributes(QpType type, QpState from, QpState to);

}  // namespace rocefs
