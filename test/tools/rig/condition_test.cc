#include "tools/rocefs/rig/condition.h"

#include <string>

#include "test/catch.h"

using namespace rocefs;

namespace {

bool holds(const char* condition, const char* text) {
  Result<Condition> parsed = Condition::parse(condition);
  REQUIRE(parsed);
  Result<bool> met = parsed->met_by(text);
  return met && *met;
}

std::string refusal(const char* condition) {
  Result<Condition> parsed = Condition::parse(condition);
  return parsed ? "" : parsed.error().reason;
}

}  // namespace

TEST_CASE("condition: text matches a pattern, or not") {
  CHECK(holds("state=done", "done"));
  CHECK_FALSE(holds("state=done", "done soon"));
  CHECK(holds("state=4: *", "4: ACTIVE"));
  CHECK(holds("state=[0-9]: ACTIVE", "4: ACTIVE"));
  CHECK(holds("empty=", ""));
  CHECK(holds("result=*retransmitted 0*", "bytes 5\nretransmitted 0\n"));
  CHECK(holds("state!=running", "done"));
  CHECK_FALSE(holds("state!=d*", "done"));
  CHECK(holds("set=a=b", "a=b"));  // the first operator separates
  Result<Condition> others = Condition::parse("class/infiniband/mb_[!0]/state!=down");
  REQUIRE(others);
  CHECK(others->path() == "class/infiniband/mb_[!0]/state");
}

TEST_CASE("condition: numbers compare exactly") {
  CHECK(holds("n>5", "6"));
  CHECK_FALSE(holds("n>5", "5"));
  CHECK(holds("n>=5", "5"));
  CHECK(holds("n<=0.5", "0.25"));
  CHECK(holds("n<-1", "-2"));
  // Counters of 64 bits: a double would take both for 2^64.
  CHECK(holds("n<18446744073709551615", "18446744073709551614"));
  for (const char* text : {"", "25G", "off", "1e9", "0x10", "nan", "inf", "1 2", "1.2.3", "-"}) {
    INFO(text);
    CHECK_FALSE(holds("n>0", text));
    CHECK_FALSE(holds("n<=0", text));
  }
}

TEST_CASE("condition: mistakes are refused with the reason") {
  CHECK(refusal("state") == "'state' is no condition: PATH=VALUE, PATH!=VALUE or 'PATH>NUMBER'");
  CHECK(refusal("state!done").starts_with("'state!done' is no condition"));
  CHECK(refusal("=done") == "'=done' has no path");
  CHECK(refusal("n>many") == "'n>many': 'many' is no number");
  CHECK(refusal("n>=") == "'n>=': '' is no number");
}
