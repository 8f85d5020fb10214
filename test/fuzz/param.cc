// A parameter's type, in one octet, and a text for its value.
#include <cmath>
#include <cstring>

#include "pcc/api/parameter.h"
#include "test/fuzz/fuzz.h"

using namespace rocefs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  auto type = static_cast<mango_pcc_param_type_e>(data[0] % 8);  // the last is none
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  Result<ParameterValue> value = parse_parameter(type, text);
  if (!value) {
    fuzz::require(value.error().code > 0 && !value.error().reason.empty());
    fuzz::require(value.error().reason.find('\n') == std::string::npos);
    return 0;
  }
  fuzz::require(value->size == parameter_size(type) && value->size > 0);
  std::string shown = format_parameter(type, value->bytes.data());
  Result<ParameterValue> again = parse_parameter(type, shown);
  fuzz::require(static_cast<bool>(again));
  fuzz::require(std::memcmp(again->bytes.data(), value->bytes.data(), value->size) == 0);
  return 0;
}
