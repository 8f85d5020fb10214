// Stores as text: what `set` and `clock/at` read, and `clock/log` writes.
#include "core/base/assignment.h"

#include <algorithm>
#include <cerrno>

#include "test/fuzz/fuzz.h"

using namespace rocefs;

namespace {

void when(std::string_view word) {
  Result<When> parsed = parse_when(word);
  if (!parsed) {
    fuzz::require(parsed.error().code == EINVAL || parsed.error().code == ERANGE);
    return fuzz::require(!parsed.error().reason.empty());
  }
  fuzz::require(parsed->moment.at >= 0);
  fuzz::require(parsed->absolute == word.starts_with('@'));
  if (!parsed->absolute) return fuzz::require(parsed->moment.events == 0);
  std::string shown = format_moment(parsed->moment);
  Result<When> again = parse_when(shown);
  fuzz::require(again && again->absolute && again->moment == parsed->moment);
  fuzz::require(shown.find_first_of(" \n") == shown.npos);
}

void assignments(std::string_view text) {
  Result<std::vector<Assignment>> parsed = parse_assignments(text);
  if (!parsed) {
    return fuzz::require(parsed.error().code > 0 && !parsed.error().reason.empty());
  }
  fuzz::require(!parsed->empty());
  std::string line = format_assignments(*parsed);
  Result<std::vector<Assignment>> again = parse_assignments(line);
  fuzz::require(again && *again == *parsed);
  fuzz::require(line.find('\n') == std::string::npos);
}

}  // namespace

// The whole, as `set` has it; its first word and the rest, as `clock/at` does.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  size_t word = std::min(text.find(' '), text.size());
  assignments(text);
  when(text.substr(0, word));
  assignments(text.substr(word));
  return 0;
}
