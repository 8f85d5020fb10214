// BurstSpec: what `echo "burst 1000 timeout=50ms" > sa/send` asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/result.h"
#include "core/config/topology.h"

namespace rocefs {

// As echoed: `burst COUNT [port=DEVICE[/N]] [timeout=50ms] [retries=0]`, in one line.
struct BurstSpec {
  static constexpr uint64_t kMaxCount = 1'000'000;
  static constexpr uint32_t kMaxTimeoutMs = 3'600'000;

  uint64_t count = 0;            // 1 to kMaxCount
  std::optional<PortName> port;  // nothing: port 1 of the first device
  uint32_t timeout_ms = 1000;    // 1 to kMaxTimeoutMs
  uint32_t retries = 0;
};

// EINVAL, or ERANGE for numbers that do not fit their type, with the reason. Whether there is such
// a port is another question.
Result<BurstSpec> parse_burst(std::string_view text);

}  // namespace rocefs
