// Generator: sends a burst of SA requests from one port and counts how each ended: what
// kernel/debug/rocefs/sa/send does, for rigs without infiniband-diags.
//
// Core thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/result.h"
#include "core/time.h"
#include "mad_cc/mad_port.h"

namespace rocefs {

// As echoed: `burst COUNT [port=DEVICE[/N]] [timeout=50ms] [retries=0]`.
struct BurstSpec {
  uint64_t count = 0;  // 1 to 1,000,000
  std::string port;    // empty: port 1 of the first device
  uint32_t timeout_ms = 1000;
  uint32_t retries = 0;
};
Result<BurstSpec> parse_burst(std::string_view text);

}  // namespace rocefs
