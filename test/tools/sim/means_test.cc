// Seeds of a sweep, and means over them.
#include <catch2/catch.hpp>
#include <cmath>

#include "tools/rocefs/sim/means.h"
#include "tools/rocefs/sim/seed_list.h"

namespace rocefs::test {

TEST_CASE("seeds: numbers and ranges, in rising order") {
  CHECK(*parse_seeds("1..4") == std::vector<uint64_t>{1, 2, 3, 4});
  CHECK(*parse_seeds("7,1..3,5") == std::vector<uint64_t>{1, 2, 3, 5, 7});
  CHECK(*parse_seeds("18446744073709551615") == std::vector<uint64_t>{~uint64_t{0}});
  CHECK(*parse_seeds("18446744073709551614..18446744073709551615") ==
        std::vector<uint64_t>{~uint64_t{0} - 1, ~uint64_t{0}});
  CHECK(format_seeds({1, 2, 3, 5, 7, 8}) == "1..3,5,7,8");
}

TEST_CASE("seeds: what is no list is refused with the reason") {
  CHECK(parse_seeds("").error().reason == "no seed");
  CHECK(parse_seeds("x").error().reason == "'x': a seed is a number");
  CHECK(parse_seeds("1..").error().reason == "'': a seed is a number");
  CHECK(parse_seeds("4..1").error().reason == "'4..1': the range is empty");
  CHECK(parse_seeds("1..3,2").error().reason == "seed 2 is there twice");
  CHECK(parse_seeds("0..18446744073709551615").error().reason == "more than 100000 seeds");
}

TEST_CASE("shard: I/N, from 1 to N") {
  CHECK(parse_shard("2/3")->index == 2);
  CHECK(parse_shard("2/3")->count == 3);
  for (const char* bad : {"", "2", "0/3", "4/3", "1/0", "a/b", "1/3/5"}) {
    INFO(bad);
    CHECK(!parse_shard(bad));
  }
}

// Values of the quantile 0.975 from tables.
TEST_CASE("student's t: beyond its table it goes on") {
  CHECK(student_t(1) == 12.7062);
  CHECK(student_t(19) == 2.0930);
  CHECK(std::abs(student_t(30) - 2.0423) < 0.001);
  CHECK(std::abs(student_t(31) - 2.0395) < 0.001);
  CHECK(std::abs(student_t(60) - 2.0003) < 0.001);
  CHECK(std::abs(student_t(120) - 1.9799) < 0.001);
  CHECK(std::abs(student_t(1'000'000) - 1.9600) < 0.001);
}

TEST_CASE("mean: its interval is that of Student's t, and one sample has none") {
  Mean mean = mean_of({2, 4, 4, 4, 5, 5, 7, 9});
  CHECK(mean.value == 5);
  // Standard deviation of the sample: sqrt(32 / 7).
  CHECK(std::abs(*mean.half_width - 2.3646 * std::sqrt(32.0 / 7 / 8)) < 1e-9);
  CHECK(mean_of({3}).value == 3);
  CHECK(!mean_of({3}).half_width);
  CHECK(mean_of({}).count == 0);
}

TEST_CASE("means: partial runs do not count") {
  RunSummary run;
  run.variant = "v";
  run.sizes = {{0, 10, {100, 100, 100, 100, 100, 100}, {1, 1, 1, 1, 1, 1}}};
  RunSummary other = run, cut = run;
  other.sizes[0].fct_ns.fill(200);
  cut.sizes[0].fct_ns.fill(9000);
  cut.reason = "limit";
  std::vector<VariantMeans> means = means_of({run, cut, other});
  REQUIRE(means.size() == 1);
  CHECK(means[0].runs == 3);
  CHECK(means[0].complete == 2);
  REQUIRE(means[0].sizes.size() == 1);
  CHECK(means[0].sizes[0].fct_ns[0].value == 150);
  CHECK(means[0].sizes[0].fct_ns[0].count == 2);
}

TEST_CASE("means: partial runs count if that is wanted and a variant has no others") {
  RunSummary cut;
  cut.variant = "cut";
  cut.reason = "limit";
  cut.sizes = {{0, 10, {100, 100, 100, 100, 100, 100}, {1, 1, 1, 1, 1, 1}}};
  RunSummary whole = cut, other = cut;
  whole.variant = other.variant = "whole";
  whole.reason.clear();
  whole.sizes[0].fct_ns.fill(200);
  std::vector<VariantMeans> means = means_of({cut, whole, other}, PartialRuns::kIfAlone);
  REQUIRE(means.size() == 2);
  CHECK(means[0].complete == 0);
  CHECK(means[0].counted == 1);
  CHECK(means[0].sizes.at(0).fct_ns[0].value == 100);
  CHECK(means[1].counted == 1);
  CHECK(means[1].sizes.at(0).fct_ns[0].value == 200);
  CHECK(means_of({cut, whole, other})[0].sizes.empty());
}

TEST_CASE("means: flows are counted by state, and those that are not done together") {
  RunSummary good, bad;
  good.states = {{"done", 10}};
  bad.states = {{"done", 6}, {"failed", 3}, {"removed", 1}};
  const std::vector<VariantMeans> means = means_of({good, bad});
  CHECK(means[0].totals.at("flows.done").value == 8);
  CHECK(means[0].totals.at("flows.failed").value == 1.5);
  CHECK(means[0].totals.at("flows.failed").count == 2);
  CHECK(means[0].totals.at("flows.not_done").value == 2);
  CHECK(means_of({good})[0].totals.at("flows.not_done").value == 0);
  CHECK_THAT(means_table(means), Catch::Contains("not done"));
  CHECK_THAT(means_table(means), Catch::Contains("2 ±"));
}

TEST_CASE("means: a run without flows of a size counts for their number, not for their FCT") {
  RunSummary run;
  run.sizes = {{1024, 4, {100, 100, 100, 100, 100, 100}, {1, 1, 1, 1, 1, 1}}, {0, 4, {}, {}}};
  RunSummary other = run;
  other.sizes.erase(other.sizes.begin());
  std::vector<VariantMeans> means = means_of({run, other});
  REQUIRE(means[0].sizes.size() == 2);
  CHECK(means[0].sizes[0].flows.value == 2);
  CHECK(means[0].sizes[0].fct_ns[0].value == 100);
  CHECK(means[0].sizes[0].fct_ns[0].count == 1);
}

}  // namespace rocefs::test
