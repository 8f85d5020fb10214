// Parameters as text: parsing and formatting.
#include "pcc/api/parameter.h"

#include <catch2/catch.hpp>
#include <cerrno>

using namespace rocefs;

namespace {

std::string taken(mango_pcc_param_type_e type, std::string_view text) {
  Result<ParameterValue> value = parse_parameter(type, text);
  if (!value) return value.error().code == EINVAL ? "EINVAL" : "another errno";
  CHECK(value->size == parameter_size(type));
  return format_parameter(type, value->bytes.data());
}

}  // namespace

TEST_CASE("parameter: integers are decimal or hexadecimal, within the range of their type") {
  struct Row {
    mango_pcc_param_type_e type;
    const char *text, *expected;
  };
  constexpr auto u32 = MANGO_PCC_PARAM_TYPE_UINT32, i32 = MANGO_PCC_PARAM_TYPE_INT32,
                 u64 = MANGO_PCC_PARAM_TYPE_UINT64, i64 = MANGO_PCC_PARAM_TYPE_INT64;
  for (const Row& row : std::initializer_list<Row>{
           {u32, "80", "80"},
           {u32, "0x50", "80"},
           {u32, "+7\n", "7"},
           {u32, "010", "10"},
           {u32, "0xffffffff", "4294967295"},
           {u32, "4294967296", "EINVAL"},
           {u32, "-1", "EINVAL"},
           {u32, "-0", "0"},
           {u32, "99999999999999999999999", "EINVAL"},
           {u32, "80.5", "EINVAL"},
           {u32, "", "EINVAL"},
           {u32, "0x", "EINVAL"},
           {u32, "0x-1", "EINVAL"},
           {u32, "--1", "EINVAL"},
           {u32, "+-1", "EINVAL"},
           {u32, "8 0", "EINVAL"},
           {i32, "-2147483648", "-2147483648"},
           {i32, "-2147483649", "EINVAL"},
           {i32, "2147483648", "EINVAL"},
           {i32, "-0x10", "-16"},
           {u64, "18446744073709551615", "18446744073709551615"},
           {u64, "18446744073709551616", "EINVAL"},
           {i64, "-9223372036854775808", "-9223372036854775808"},
           {i64, "9223372036854775808", "EINVAL"},
       }) {
    INFO(row.text);
    CHECK(taken(row.type, row.text) == row.expected);
  }
}

TEST_CASE("parameter: fractions are shown as the shortest equivalent text") {
  constexpr auto f64 = MANGO_PCC_PARAM_TYPE_DOUBLE, f32 = MANGO_PCC_PARAM_TYPE_FLOAT;
  CHECK(taken(f64, "0.0625") == "0.0625");
  CHECK(taken(f64, "5e-1\n") == "0.5");
  CHECK(taken(f64, "+.5") == "0.5");
  CHECK(taken(f64, "-3") == "-3");
  CHECK(taken(f64, "-0.0") == "0");
  CHECK(taken(f32, "-0") == "0");
  CHECK(taken(f64, "0x10") == "16");
  CHECK(taken(f64, "0.1") == "0.1");
  CHECK(taken(f32, "0.1") == "0.1");
  CHECK(taken(f64, "1e999") == "EINVAL");
  CHECK(taken(f32, "1e39") == "EINVAL");
  for (const char* text : {"", "x", "1.2.3", "inf", "nan", "-nan", "infinity", "0x", "1e", "1 "}) {
    INFO(text);
    CHECK(taken(f64, text) == "EINVAL");
  }
}

TEST_CASE("parameter: booleans parse as in the kernel") {
  CHECK(taken(MANGO_PCC_PARAM_TYPE_BOOL, "true") == "1");
  CHECK(taken(MANGO_PCC_PARAM_TYPE_BOOL, "off\n") == "0");
  CHECK(taken(MANGO_PCC_PARAM_TYPE_BOOL, "2") == "EINVAL");
}
