// A line for sa/send.
#include "mad_cc/files/burst_spec.h"
#include "test/fuzz/fuzz.h"

using namespace rocefs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view line(reinterpret_cast<const char*>(data), size);
  Result<BurstSpec> spec = parse_burst(line);
  if (!spec) {
    fuzz::require(spec.error().code > 0 && !spec.error().reason.empty());
    return 0;
  }
  fuzz::require(spec->count >= 1 && spec->count <= BurstSpec::kMaxCount);
  fuzz::require(spec->timeout_ms >= 1 && spec->timeout_ms <= BurstSpec::kMaxTimeoutMs);
  fuzz::require(!spec->port || spec->port->number == 1 || spec->port->number == 2);
  return 0;
}
