// A line for traffic/start.
#include "rdma/traffic/flow.h"

#include "test/fuzz/fuzz.h"

using namespace rocefs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view line(reinterpret_cast<const char*>(data), size);
  Result<FlowSpec> spec = parse_flow(line);
  if (spec) {
    fuzz::require(!spec->name.empty() && spec->name.find('/') == std::string::npos);
    fuzz::require(spec->qps >= 1 && spec->count >= 1);
  } else {
    fuzz::require(spec.error().code > 0 && !spec.error().reason.empty());
  }
  return 0;
}
