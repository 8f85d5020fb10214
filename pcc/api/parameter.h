// Parameter values: bytes of the type that the algorithm chose, and their text form.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "pcc/api/libmango.h"

namespace rocefs {

// Size in octets; 0 for a value outside the enumeration.
size_t parameter_size(mango_pcc_param_type_e type);

struct ParameterValue {
  std::array<uint8_t, 8> bytes{};
  size_t size = 0;
};

// Accepts decimal or 0x integers, also 0.5 or 5e-1 for fractions, and the kernel's booleans; one
// leading + and one trailing newline are allowed. EINVAL: not a number, or outside the type.
Result<ParameterValue> parse_parameter(mango_pcc_param_type_e type, std::string_view text);
// Approximation of a value, to compare it.
double parameter_number(mango_pcc_param_type_e type, const void* value);
// Text that parses back to the same value. No `value` need be aligned.
std::string format_parameter(mango_pcc_param_type_e type, const void* value);

}  // namespace rocefs
