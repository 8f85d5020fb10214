// Distributions of flows, without the flows.
#include <unistd.h>
#include <algorithm>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "core/base/rng.h"
#include "tools/rocefs/sim/flow_statistics.h"
#include "tools/rocefs/sim/flows_csv.h"

namespace rocefs::test {
namespace {

FlowRecord ended(uint64_t bytes, TimeNs fct, double ideal) {
  FlowRecord flow;
  flow.name = "f";
  flow.from = "h1";
  flow.to = "h0";
  flow.state = FlowRecord::State::kDone;
  flow.bytes = flow.moved = bytes;
  flow.elapsed = fct;
  flow.received = 1;
  flow.ideal_ns = ideal;
  return flow;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return (std::stringstream() << file.rdbuf()).str();
}

}  // namespace

TEST_CASE("log histogram: quantiles are within 1/128 of the value of that rank") {
  Rng rng(7, "values");
  LogHistogram histogram;
  std::vector<uint64_t> values;
  for (int i = 0; i < 20000; ++i) {
    values.push_back(rng.next() >> (rng.next() % 60));
    histogram.add(values.back());
  }
  std::sort(values.begin(), values.end());
  for (double fraction : {0.0, 0.001, 0.1, 0.5, 0.95, 0.99, 0.999, 1.0}) {
    auto rank = static_cast<size_t>(std::ceil(fraction * 20000));
    auto exact = static_cast<double>(values[std::max<size_t>(rank, 1) - 1]);
    INFO(fraction);
    CHECK(std::abs(static_cast<double>(histogram.quantile(fraction)) - exact) <= exact / 128);
  }
  CHECK(histogram.max() == values.back());
}

TEST_CASE("log histogram: small values are exact, and none gives 0") {
  LogHistogram histogram;
  CHECK(histogram.quantile(0.5) == 0);
  CHECK(histogram.mean() == 0);
  for (uint64_t value = 1; value <= 100; ++value) histogram.add(value);
  CHECK(histogram.quantile(0.5) == 50);
  CHECK(histogram.quantile(0.99) == 99);
  CHECK(histogram.quantile(0.999) == 100);
  CHECK(histogram.mean() == 50.5);
}

TEST_CASE("flow statistics: flows are counted by state, and those done by size") {
  FlowStatistics flows;
  flows.flow_ended(ended(100, 2000, 1000));
  flows.flow_ended(ended(1024, 3000, 1000));
  flows.flow_ended(ended(1025, 8000, 2000));
  FlowRecord cut = ended(1 << 20, 5000, 1000);
  cut.state = FlowRecord::State::kRunning;
  cut.moved = 17;
  flows.flow_ended(cut);
  CHECK(flows.flows() == 4);
  CHECK(flows.in(FlowRecord::State::kDone) == 3);
  CHECK(flows.in(FlowRecord::State::kRunning) == 1);
  CHECK(flows.totals().bytes == 100 + 1024 + 1025 + 17);
  FlowRecord lost = ended(1 << 20, 500, 1000);
  lost.state = FlowRecord::State::kLost;
  lost.moved = 0;
  flows.flow_ended(lost);
  CHECK(flows.in(FlowRecord::State::kLost) == 1);
  CHECK(flows.all().count() == 3);
  REQUIRE(flows.by_size().size() == 2);
  CHECK(flows.by_size().at(1024).count() == 2);
  CHECK(flows.by_size().at(2048).slowdown_millionths.max() == 4'000'000);
  CHECK(flows.all().fct_ns.max() == 8000);
}

TEST_CASE("flow statistics: merged ones are those of all flows together") {
  Rng rng(3, "flows");
  FlowStatistics one, other, both;
  for (int i = 0; i < 1000; ++i) {
    FlowRecord flow = ended(rng.next() % 100'000, static_cast<TimeNs>(rng.next() % 1'000'000), 500);
    (i % 3 ? one : other).flow_ended(flow);
    both.flow_ended(flow);
  }
  one.merge(other);
  CHECK(one.flows() == both.flows());
  CHECK(one.by_size().size() == both.by_size().size());
  for (double fraction : {0.5, 0.95, 0.99, 0.999, 1.0}) {
    CHECK(one.all().fct_ns.quantile(fraction) == both.all().fct_ns.quantile(fraction));
    CHECK(one.all().slowdown_millionths.quantile(fraction) ==
          both.all().slowdown_millionths.quantile(fraction));
  }
}

TEST_CASE("flows.csv: it says that it is partial until it is complete") {
  char path[] = "/tmp/flows_csv_XXXXXX";
  int descriptor = ::mkstemp(path);
  REQUIRE(descriptor >= 0);
  ::close(descriptor);
  for (bool complete : {false, true}) {
    FlowsCsv csv(path, "x.ini, seed 1");
    csv.begin("fast");
    csv.flow_ended(ended(1000, 2000, 1000));
    FlowRecord failed = ended(5, 3000, 1000);
    failed.state = FlowRecord::State::kFailed;
    failed.reason = "said \"no\"";
    csv.flow_ended(failed);
    CHECK(csv.finish(complete));
    std::string text = content_of(path);
    CHECK(
        text.starts_with(complete ? "# x.ini, seed 1, complete\n" : "# x.ini, seed 1, partial \n"));
    CHECK(text.find("\nfast,f,h1,h0,0,1000,2000,1000,2.0000,4000000000,0,0,\"done\",1\n") !=
          text.npos);
    CHECK(text.find("\"failed: said \"\"no\"\"\",1\n") != text.npos);
  }
  std::remove(path);
}

TEST_CASE("flows.csv: a full disk is told at the end, with the file's name") {
  FlowsCsv csv("/dev/full", "x.ini");
  for (int i = 0; i < 1000; ++i) csv.flow_ended(ended(1000, 2000, 1000));
  Result<void> finished = csv.finish(true);
  REQUIRE(!finished);
  CHECK(finished.error().reason == "/dev/full: No space left on device");
}

}  // namespace rocefs::test
