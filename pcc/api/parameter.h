// Values of parameters: octets of a type that an algorithm chose, and text as people write them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "pcc/api/libmango.h"

namespace rocefs {

// Octets; 0 for what is none of the enumeration.
size_t parameter_size(mango_pcc_param_type_e type);

struct ParameterValue {
  std::array<uint8_t, 8> bytes{};
  size_t size = 0;
};

// Whole numbers are decimal or 0x…, fractions also 0.5 or 5e-1, booleans as the kernel takes them;
// one leading + and one trailing newline are allowed. EINVAL for what is no such number, ERANGE for
// one that the type does not hold.
Result<ParameterValue> parse_parameter(mango_pcc_param_type_e type, std::string_view text);
// Parses back to the same value. `value` need not be aligned.
std::string format_parameter(mango_pcc_param_type_e type, const void* value);

}  // namespace rocefs
