// GoalSchedule: what each rank of a parallel program sends, receives and computes, and what waits
// for what, as a file in GOAL has it (Group Operation Assembly Language, the input of LogGOPSim and
// ATLAHS):
//
//   num_ranks 2
//   rank 0 {
//   l1: calc 2000
//   l2: send 65536b to 1 tag 7
//   l2 requires l1
//   }
//   rank 1 {
//   l1: recv 65536b from 0 tag 7
//   }
//
// Times are in ns. `-1` in place of a rank or a tag of a recv stands for any. `requires` waits for
// the end of an operation, `irequires` for its start. Comments are those of C++.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace rocefs {

struct GoalOperation {
  enum class Kind : uint8_t { kSend, kRecv, kCalc };
  static constexpr uint32_t kAny = UINT32_MAX;  // peer or tag of a recv

  Kind kind = Kind::kCalc;
  uint32_t rank = 0;
  uint32_t peer = 0;  // to which it sends, from which it receives
  uint32_t tag = 0;
  uint64_t amount = 0;  // octets, or ns of a calc
  uint32_t cpu = 0;     // of its rank: its calcs follow one another
  uint32_t line = 0;    // of the file
};

struct GoalSchedule {
  uint32_t ranks = 0;
  std::vector<GoalOperation> operations;
  struct Dependency {
    uint32_t first = 0, then = 0;  // operations
    bool start = false;            // `then` waits for the start of `first`, not for its end
  };
  std::vector<Dependency> dependencies;

  // The reason of a failure begins with NAME:LINE. EINVAL, ERANGE.
  static Result<GoalSchedule> parse(std::string_view text, const std::string& name);
};

}  // namespace rocefs
