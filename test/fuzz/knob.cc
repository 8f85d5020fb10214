// Text for a knob of each type, and for each of the kernel's parsers; the first byte selects one.
// An accepted value is printed in a form that parses to the same value.
#include "core/tree/knob.h"

#include <array>

#include "core/base/kstrto.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/config/topology.h"
#include "test/fuzz/fuzz.h"

using namespace rocefs;

namespace {

constexpr uint64_t kAny = UINT64_MAX;
constexpr KnobRow kRows[] = {
    {"uint", KnobType::kUint, 0, kAny, "0", "", "", ""},
    {"small", KnobType::kUint, 3, 1000, "3", "", "", ""},
    {"decimal", KnobType::kDecimal, 0, kAny, "0", "", "", ""},
    {"bool", KnobType::kBool, 0, 1, "0", "", "", ""},
    {"word", KnobType::kWord, 0, 0, "low", "low high very-high", "", ""},
    {"rate", KnobType::kRate, 0, kAny, "0", "", "", ""},
    {"size", KnobType::kSize, 0, kAny, "0", "", "", ""},
    {"duration", KnobType::kDuration, 0, kAny, "0", "", "", ""},
    {"probability", KnobType::kProbability, 0, 1, "0", "", "", ""},
    {"text", KnobType::kText, 0, 63, "", "", "", ""},
};
constexpr size_t kParsers = 5;

void knob(const KnobRow& row, std::string_view text) {
  Result<KnobValue> value = parse_knob(row, text);
  if (!value) return fuzz::require(value.error().code == EINVAL || value.error().code == ERANGE);
  std::string shown = format_knob(row, *value);
  Result<KnobValue> again = parse_knob(row, shown + "\n");
  fuzz::require(again && *again == *value);
}

void parser(size_t which, std::string_view text) {
  constexpr std::string_view kWords[] = {"one", "two"};
  switch (which) {
    case 0:
      for (unsigned base : {0u, 8u, 10u, 16u}) {
        if (Result<uint64_t> value = kstrtou64(text, base); value && base == 10) {
          fuzz::require(*kstrtou64(std::to_string(*value), 0) == *value);
        }
      }
      return;
    case 1:
      (void)kstrtobool(text);
      return;
    case 2:
      if (Result<size_t> word = match_word(text, kWords)) fuzz::require(*word < 2);
      return;
    case 3:
      if (std::optional<PortName> port = parse_port_name(text)) {
        fuzz::require(parse_port_name(port->text())->text() == port->text());
      }
      return;
    default:
      fuzz::require(quoted(text).size() >= 2);
      for (std::string_view part : split(text, " ,")) fuzz::require(!part.empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  size_t which = data[0] % (std::size(kRows) + kParsers);
  if (which < std::size(kRows)) {
    knob(kRows[which], text);
  } else {
    parser(which - std::size(kRows), text);
  }
  return 0;
}
