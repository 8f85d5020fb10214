// A line for inject/add.
#include "rdma/fabric/injector.h"
#include "test/fuzz/fuzz.h"

using namespace rocefs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view line(reinterpret_cast<const char*>(data), size);
  Result<InjectSpec> spec = parse_inject(line);
  if (!spec) {
    fuzz::require(spec.error().code > 0 && !spec.error().reason.empty());
    return 0;
  }
  fuzz::require(!spec->name.empty() && spec->name.find('/') == std::string::npos);
  fuzz::require(spec->probability > 0 && spec->probability <= 1 && spec->by >= 1);
  fuzz::require(spec->delay >= 0);
  fuzz::require(!spec->at_once || spec->action == InjectAction::kDown ||
                spec->action == InjectAction::kUp);
  fuzz::require(spec->action != InjectAction::kUp || spec->at_once);
  return 0;
}
