// Stores as text: what `set` and `clock/at` read, and `clock/log` writes.
#include "core/assignment.h"

#include "test/fuzz/fuzz.h"

using namespace rocefs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  Result<std::vector<Assignment>> parsed = parse_assignments(text);
  if (!parsed) {
    fuzz::require(parsed.error().code > 0 && !parsed.error().reason.empty());
    return 0;
  }
  fuzz::require(!parsed->empty());
  std::string line = format_assignments(*parsed);
  Result<std::vector<Assignment>> again = parse_assignments(line);
  fuzz::require(again && *again == *parsed);
  fuzz::require(line.find('\n') == std::string::npos);
  return 0;
}
