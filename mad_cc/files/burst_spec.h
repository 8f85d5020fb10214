// BurstSpec: the parsed text of `echo "burst 1000 timeout=50ms" > sa/send`.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/result.h"
#include "core/config/topology.h"

namespace rocefs {

// Syntax, in one line: `burst COUNT [port=DEVICE[/N]] [timeout=50ms] [retries=0]`.
struct BurstSpec {
  static constexpr uint64_t kMaxCount = 1'000'000;
  static constexpr uint32_t kMaxTimeoutMs = 3'600'000;

  uint64_t count = 0;            // 1 to kMaxCount
  std::optional<PortName> port;  // nothing: port 1 of the first device
  uint32_t timeout_ms = 1000;    // 1 to kMaxTimeoutMs
  uint32_t retries = 0;
};

// Fails with EINVAL, or with ERANGE for a number that does not fit its type, and a reason. Does not
// check that the port exists.
Result<BurstSpec> parse_burst(std::string_view text);

}  // namespace rocefs
