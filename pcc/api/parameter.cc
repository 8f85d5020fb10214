#include "pcc/api/parameter.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/base/kstrto.h"

namespace rocefs {
namespace {

template <class T>
ParameterValue value_of(T value) {
  ParameterValue result;
  std::memcpy(result.bytes.data(), &value, sizeof value);
  result.size = sizeof value;
  return result;
}

template <class T>
T read(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Number without a trailing newline and a leading +.
std::string_view bare(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

bool is_hex(std::string_view digits) {
  return digits.starts_with("0x") || digits.starts_with("0X");
}

// Magnitude of an integer. EINVAL unless all of `digits` belongs to it.
std::errc parse_magnitude(std::string_view digits, uint64_t& magnitude) {
  int base = is_hex(digits) ? 16 : 10;
  if (base == 16) digits.remove_prefix(2);
  const char* end = digits.data() + digits.size();
  auto [stopped, code] = std::from_chars(digits.data(), end, magnitude, base);
  return stopped == end ? code : std::errc::invalid_argument;
}

template <class T>
Result<ParameterValue> parse_whole(std::string_view text) {
  std::string_view digits = bare(text);
  bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  uint64_t magnitude = 0;
  std::errc code = parse_magnitude(digits, magnitude);
  if (code == std::errc::invalid_argument) {
    return errorf(EINVAL, "{} is not a whole number", quoted(text));
  }
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<T>::max());
  constexpr uint64_t kLowest = std::is_signed_v<T> ? kMax + 1 : 0;
  if (code != std::errc() || magnitude > (negative ? kLowest : kMax)) {
    return errorf(EINVAL, "{} is outside {} to {}", quoted(text), std::numeric_limits<T>::min(),
                  std::numeric_limits<T>::max());
  }
  return value_of(static_cast<T>(negative ? 0 - magnitude : magnitude));
}

template <class T>
Result<ParameterValue> parse_fraction(std::string_view text) {
  std::string_view digits = bare(text);
  if (is_hex(digits)) {
    uint64_t magnitude = 0;
    std::errc code = parse_magnitude(digits, magnitude);
    if (code == std::errc()) return value_of(static_cast<T>(magnitude));
  }
  T value = 0;
  const char* end = digits.data() + digits.size();
  auto [stopped, code] = std::from_chars(digits.data(), end, value);
  bool spelt = digits.find_first_not_of("0123456789+-.eE") != digits.npos;  // inf, nan
  if (code == std::errc::invalid_argument || stopped != end || spelt) {
    return errorf(EINVAL, "{} is not a number", quoted(text));
  }
  if (code != std::errc()) return errorf(EINVAL, "{} is too large or too small", quoted(text));
  return value_of(value);
}

}  // namespace

size_t parameter_size(mango_pcc_param_type_e type) {
  switch (type) {
    case MANGO_PCC_PARAM_TYPE_UINT32:
    case MANGO_PCC_PARAM_TYPE_INT32:
    case MANGO_PCC_PARAM_TYPE_FLOAT:
      return 4;
    case MANGO_PCC_PARAM_TYPE_DOUBLE:
    case MANGO_PCC_PARAM_TYPE_UINT64:
    case MANGO_PCC_PARAM_TYPE_INT64:
      return 8;
    case MANGO_PCC_PARAM_TYPE_BOOL:
      return 1;
  }
  return 0;
}

Result<ParameterValue> parse_parameter(mango_pcc_param_type_e type, std::string_view text) {
  switch (type) {
    case MANGO_PCC_PARAM_TYPE_UINT32:
      return parse_whole<uint32_t>(text);
    case MANGO_PCC_PARAM_TYPE_INT32:
      return parse_whole<int32_t>(text);
    case MANGO_PCC_PARAM_TYPE_UINT64:
      return parse_whole<uint64_t>(text);
    case MANGO_PCC_PARAM_TYPE_INT64:
      return parse_whole<int64_t>(text);
    case MANGO_PCC_PARAM_TYPE_DOUBLE:
      return parse_fraction<double>(text);
    case MANGO_PCC_PARAM_TYPE_FLOAT:
      return parse_fraction<float>(text);
    case MANGO_PCC_PARAM_TYPE_BOOL: {
      Result<bool> value = kstrtobool(text);
      if (!value) return value.error();
      return value_of(static_cast<uint8_t>(*value));
    }
  }
  return Error{EINVAL, "a parameter of no known type"};
}

double parameter_number(mango_pcc_param_type_e type, const void* value) {
  switch (type) {
    case MANGO_PCC_PARAM_TYPE_UINT32:
      return read<uint32_t>(value);
    case MANGO_PCC_PARAM_TYPE_INT32:
      return read<int32_t>(value);
    case MANGO_PCC_PARAM_TYPE_UINT64:
      return static_cast<double>(read<uint64_t>(value));
    case MANGO_PCC_PARAM_TYPE_INT64:
      return static_cast<double>(read<int64_t>(value));
    case MANGO_PCC_PARAM_TYPE_DOUBLE:
      return read<double>(value);
    case MANGO_PCC_PARAM_TYPE_FLOAT:
      return read<float>(value);
    case MANGO_PCC_PARAM_TYPE_BOOL:
      return read<uint8_t>(value) ? 1 : 0;
  }
  return 0;
}

std::string format_parameter(mango_pcc_param_type_e type, const void* value) {
  switch (type) {
    case MANGO_PCC_PARAM_TYPE_UINT32:
      return fmt::format("{}", read<uint32_t>(value));
    case MANGO_PCC_PARAM_TYPE_INT32:
      return fmt::format("{}", read<int32_t>(value));
    case MANGO_PCC_PARAM_TYPE_UINT64:
      return fmt::format("{}", read<uint64_t>(value));
    case MANGO_PCC_PARAM_TYPE_INT64:
      return fmt::format("{}", read<int64_t>(value));
    case MANGO_PCC_PARAM_TYPE_DOUBLE:
      return fmt::format("{}", read<double>(value) + 0.0);  // -0 is 0
    case MANGO_PCC_PARAM_TYPE_FLOAT:
      return fmt::format("{}", read<float>(value) + 0.0F);
    case MANGO_PCC_PARAM_TYPE_BOOL:
      return read<uint8_t>(value) ? "1" : "0";
  }
  return {};
}

}  // namespace rocefs
