// The one function of magic_enum that the suite uses, without names: the number.
#pragma once
#include <string>
namespace magic_enum {
template <typename Enum>
std::string enum_name(Enum value) {
  return std::to_string(static_cast<long long>(value));
}
}  // namespace magic_enum
