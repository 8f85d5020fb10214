// Scenarios in the ini file: kept as written, with ranges expanded, and refused by line.
#include "core/config/scenario.h"

#include <catch2/catch.hpp>
#include <cerrno>

#include "core/config/config.h"

using namespace rocefs;

namespace {

Scenario scenario_of(const std::string& text) {
  Result<Config> config = parse_config(text, "f");
  if (!config) FAIL(config.error().reason);
  return config->scenario;
}

std::string refusal(const std::string& text) {
  Result<Config> config = parse_config(text, "f");
  if (config) return "accepted";
  CHECK(config.error().code == EINVAL);
  return config.error().reason;
}

}  // namespace

TEST_CASE("scenario: a file can set every value of a run") {
  Scenario scenario = scenario_of(
      "[sim]\ntitle = A title: with a colon\nuntil=5ms\n\ncapture=yes\n"
      "[flows]\nf = write a b size=1M start=5us\n"
      "[at]\n1ms = x/y=1 z=2\n1ms = w=3\n"
      "[inject]\nd = drop a-s psn=5\n"
      "[sample]\ninterval=20us\nq = devices/pci0000:2b/x key=bytes rate\n"
      "[plot]\nQueue: all (KiB) = q q\n"
      "[variant one]\na:b/c = 1\n[variant two]\na:b/c = 2\nload/l/window = 9\n"
      "[load l]\npattern = poisson\nload = 0.5\n[load m]\n");
  CHECK(scenario.title == "A title: with a colon");
  CHECK(scenario.until == 5 * kMillisecond);
  CHECK(scenario_of("[sim]\nlimit=1s\n").limit == kSecond);
  CHECK(scenario.capture);
  CHECK(scenario.interval == 20 * kMicrosecond);
  REQUIRE(scenario.flows.size() == 1);
  CHECK(scenario.flows[0].key == "f");
  CHECK(scenario.flows[0].value == "write a b size=1M start=5us");
  CHECK(scenario.flows[0].line == 7);
  REQUIRE(scenario.stores.size() == 2);
  CHECK(scenario.stores[0].value == "x/y=1 z=2");
  CHECK(scenario.stores[1].key == "1ms");
  REQUIRE(scenario.faults.size() == 1);
  CHECK(scenario.faults[0].value == "drop a-s psn=5");
  REQUIRE(scenario.samples.size() == 1);
  CHECK(scenario.samples[0].value == "devices/pci0000:2b/x key=bytes rate");
  REQUIRE(scenario.panels.size() == 1);
  CHECK(scenario.panels[0].key == "Queue: all (KiB)");
  REQUIRE(scenario.variants.size() == 2);
  CHECK(scenario.variants[1].name == "two");
  REQUIRE(scenario.variants[1].knobs.size() == 1);
  CHECK(scenario.variants[1].knobs[0].path == "a:b/c");
  CHECK(scenario.variants[1].knobs[0].value == "2");
  CHECK(scenario.variants[1].knobs[0].line == 21);
  REQUIRE(scenario.variants[1].loads.size() == 1);
  CHECK(scenario.variants[1].loads[0].key == "l/window");
  REQUIRE(scenario.loads.size() == 2);
  CHECK(scenario.loads[0].name == "l");
  CHECK(scenario.loads[0].line == 23);
  REQUIRE(scenario.loads[0].keys.size() == 2);
  CHECK(scenario.loads[0].keys[1].value == "0.5");
}

TEST_CASE("scenario: a range expands to several lines, and counts in key and value") {
  Scenario scenario = scenario_of(
      "[flows]\nf{1..3} = write h{8..10} h0 tag={5..7}\n[variant v]\nl/h{9..11}/x = {0..2}\n"
      "[at]\n1us = a=h{1..2}\n{2..3}us = b=h{4..5}\n1us = c{1..2}='x {3..4}' d=7 e{5..6}=8\n"
      "1us = no assignment{1..2}\n");
  REQUIRE(scenario.flows.size() == 3);
  CHECK(scenario.flows[0].key == "f1");
  CHECK(scenario.flows[2].key == "f3");
  CHECK(scenario.flows[2].value == "write h10 h0 tag=7");
  CHECK(scenario.flows[2].line == 2);
  REQUIRE(scenario.variants[0].knobs.size() == 3);
  CHECK(scenario.variants[0].knobs[2].path == "l/h11/x");
  CHECK(scenario.variants[0].knobs[2].value == "2");
  REQUIRE(scenario.stores.size() == 5);
  CHECK(scenario.stores[0].value == "a=h{1..2}");
  CHECK(scenario.stores[1].key == "2us");
  CHECK(scenario.stores[2].key == "3us");
  CHECK(scenario.stores[2].value == "b=h5");
  CHECK(scenario.stores[3].value == "c1='x 3' c2='x 4' d=7 e5=8 e6=8");
  CHECK(scenario.stores[3].line == 8);
  CHECK(scenario.stores[4].value == "no assignment{1..2}");
  Result<Config> config = parse_config("[knobs]\nx/{0..1}/y = 7\n", "f");
  REQUIRE(config);
  REQUIRE(config->knobs.size() == 2);
  CHECK(config->knobs[1].path == "x/1/y");
  // Text that is not a range is left as it is.
  for (const char* name : {"{1..}", "{..2}", "{2..1}", "{a..b}", "{1.2}", "{1..2", "1..2}"}) {
    CHECK(scenario_of(std::string("[flows]\n") + name + " = x\n").flows.at(0).key == name);
  }
}

TEST_CASE("scenario: an invalid scenario is refused with its line") {
  const struct {
    const char* text;
    const char* reason;
  } kBad[] = {
      {"[sim x]\n", "f:1: [sim] takes no name"},
      {"[sim]\nspeed=1\n", "f:2: unknown key speed in [sim]"},
      {"[sim]\nuntil=soon\n", "f:2: until: "},
      {"[sim]\nlimit=1s\nuntil=5ms\n", "f:2: limit= is for a run without until="},
      {"[sim]\ncapture=maybe\n", "f:2: capture=maybe"},
      {"[sim]\ntitle=a\ntitle=b\n", "f:3: title is given twice"},
      {"[flows]\nf = a\nf = b\n", "f:3: f is given twice"},
      {"[flows]\nf{1..2} = h{1..3}\n", "f:2: {1..3} is not as long as {1..2}"},
      {"[at]\n1us = a{1..2}=h{1..3}\n", "f:2: {1..3} is not as long as {1..2}"},
      {"[at]\n1us = a{1..9999999}=x\n", "f:2: 1us: the line has more than 100000 stores"},
      {"[at]\n1us = a{1..99999}=x b=y c=z\n", "f:2: 1us: the line has more than 100000 stores"},
      {"[flows]\nf{1..10000001} = x\n", "more than 10000000 lines"},
      {"[flows]\nf{1..65000} = x\ng{1..9940000} = x\n", "f:3: g{1..9940000}: all ranges"},
      {"[sample]\ninterval=0\n", "f:2: interval=0"},
      {"[sample]\nq=a\nq,r=b\n", "f:3: 'q,r' cannot be a name"},
      {"[sample]\nq\"=a\n", "f:2: 'q\"' cannot be a name"},
      {"[variant]\n", "f:1: '' cannot be a name"},
      {"[variant a/b]\n", "cannot be a name"},
      {"[variant a]\n[variant a]\n", "f:2: a exists already"},
      {"[flows]\nf\n", "f:2: not a [section], key = value or comment"},
  };
  for (const auto& bad : kBad) {
    INFO(bad.text);
    CHECK_THAT(refusal(bad.text), Catch::Contains(bad.reason));
  }
}
