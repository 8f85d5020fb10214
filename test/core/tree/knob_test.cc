// Knobs: transactions over several sets, assignments as text.
#include "core/tree/knob.h"
#include "core/tree/knob_file.h"

#include <catch2/catch.hpp>
#include <map>

#include "core/base/assignment.h"
#include "core/base/rng.h"
#include "core/tree/file_walk.h"
#include "core/tree/function_file.h"
#include "core/tree/knob_transaction.h"
#include "core/tree/store_log.h"

using namespace rocefs;

namespace {

constexpr KnobRow kRange[] = {
    {"low", KnobType::kUint, 0, 100, "10", "", "", "the lower end"},
    {"high", KnobType::kUint, 0, 100, "20", "", "", "the upper end"},
};

// low may not be above high.
class Range final : public KnobOwner {
 public:
  Result<void> check(std::span<const KnobValue> proposed) const override {
    if (std::get<uint64_t>(proposed[0]) <= std::get<uint64_t>(proposed[1])) return {};
    return Error{EINVAL, "low is above high"};
  }
  void apply(std::span<const KnobValue> values) override {
    applied.emplace_back(std::get<uint64_t>(values[0]), std::get<uint64_t>(values[1]));
  }
  std::vector<std::pair<uint64_t, uint64_t>> applied;
};

// Two ranges, a/ and b/, and b/ once more as link/; the engine does not run: answers come at once.
struct Ranges {
  Ranges() {
    auto created = Engine::create({ClockMode::kVirtual, 1}, loop);
    REQUIRE(created);
    engine = std::move(*created);
    add_knob_files(tree, "a", std::make_shared<KnobSet>(kRange, *engine, &a));
    add_knob_files(tree, "b", std::make_shared<KnobSet>(kRange, *engine, &b));
    tree.add_link("link", "b");
    tree.add_file("constant", constant("1"));
  }
  std::string set(std::string_view text) {
    Result<std::vector<Assignment>> assignments = parse_assignments(text);
    if (!assignments) return assignments.error().reason;
    Result<std::vector<KnobChange>> changes = knob_changes(tree, *assignments);
    if (!changes) return changes.error().reason;
    std::string said = "ok";
    store_knobs(*engine, std::move(*changes), [&](Result<Moment> applied) {
      if (!applied) said = applied.error().reason;
    });
    return said;
  }
  std::string shown() {
    std::string text;
    for (const char* path : {"a/low", "a/high", "b/low", "b/high"}) {
      text += *find_knob(tree, path)->show();
    }
    return text;
  }

  PollLoop loop;
  std::unique_ptr<Engine> engine;
  Tree tree{0, 0};
  Range a, b;
};

}  // namespace

TEST_CASE("knobs: * and ? in a path stand for the knobs of several sets") {
  Ranges ranges;
  CHECK(ranges.set("?/low=3 [ab]/high=50") == "[ab]/high: no knob has this path");
  CHECK(ranges.shown() == "10\n20\n10\n20\n");
  CHECK(ranges.set("?/low=3 */none=1") == "*/none: no knob has such a path");
  CHECK(ranges.set("*/low=3") == "link/low: given twice");
  CHECK(ranges.set("?/*=15") == "ok");
  CHECK(ranges.shown() == "15\n15\n15\n15\n");
  CHECK(ranges.set("?/l*=99") == "a/low: low is above high");
  CHECK(ranges.set("?/high=x") == "a/high: 'x' is not a number");
  CHECK(ranges.shown() == "15\n15\n15\n15\n");
  WalkBudget budget;
  CHECK(*matching_files(ranges.tree, "*", budget) == std::vector<std::string>{"constant"});
  CHECK(*matching_files(ranges.tree, "l*/h*", budget) == std::vector<std::string>{"link/high"});
  CHECK(matching_files(ranges.tree, "a/low/*", budget)->empty());
  CHECK(*matching_files(ranges.tree, "not/there", budget) == std::vector<std::string>{"not/there"});
}

TEST_CASE("knobs: a pattern that stands for too many paths is refused") {
  Ranges ranges;
  for (int i = 0; i < 300; ++i) ranges.tree.add_link(fmt::format("to/{}", i), "to");
  CHECK(ranges.set("to/*/*/*/low=1") == "to/*/*/*/low: stands for too many paths");
  for (int i = 0; i < 300; ++i) ranges.tree.add_file(fmt::format("to/f{}", i), constant("1"));
  WalkBudget budget;
  Result<std::vector<std::string>> found = matching_files(ranges.tree, "to/*/*", budget);
  REQUIRE_FALSE(found);
  CHECK(found.error().code == E2BIG);

  budget = {};
  CHECK(matching_files(ranges.tree, "to/1/*", budget)->size() == 300);
  CHECK(budget.files == WalkBudget().files - 300);
  CHECK(budget.entries <= WalkBudget().entries - 600);
  budget.entries = 600;  // what the assignments before have left
  CHECK_FALSE(matching_files(ranges.tree, "to/1/*", budget));
}

TEST_CASE("knobs: a pattern of a user who may not write all stands for fewer paths") {
  Ranges ranges;
  for (int i = 0; i < 4200; ++i) ranges.tree.add_file(fmt::format("to/{}", i), constant("1"));
  auto code = [&](bool all) {
    TreeUser writer{.uid = 1000, .groups = {}, .all = all};
    return knob_changes(ranges.tree, {{"to/*", "1"}}, writer).error().code;
  };
  CHECK(code(false) == E2BIG);
  CHECK(code(true) == EINVAL);  // no knobs
}

TEST_CASE("knobs: a transaction over two sets is applied once to each set") {
  Ranges ranges;
  CHECK(ranges.set("a/low=30 b/high=5 a/high=40 link/low=1") == "ok");
  CHECK(ranges.shown() == "30\n40\n1\n5\n");
  CHECK(ranges.a.applied == std::vector<std::pair<uint64_t, uint64_t>>{{30, 40}});
  CHECK(ranges.b.applied == std::vector<std::pair<uint64_t, uint64_t>>{{1, 5}});
}

TEST_CASE("knobs: values that are refused alone are accepted together if they are consistent") {
  Ranges ranges;
  CHECK(ranges.set("a/low=50") == "a/low: low is above high");
  CHECK(ranges.set("a/low=50\na/high=60\n") == "ok");
  CHECK(ranges.set("a/high=10") == "a/high: low is above high");
  CHECK(ranges.shown() == "50\n60\n10\n20\n");
}

TEST_CASE("knobs: one refused assignment leaves every knob unchanged") {
  Ranges ranges;
  std::map<std::string, std::string> refused = {
      {"a/low=1 b/low=21", "b/low: low is above high"},
      {"a/low=1 b/low=x", "b/low: 'x' is not a number"},
      {"a/low=1 b/low=101", "b/low: 101 is outside 0 to 100"},
      {"a/low=1 b/none=1", "b/none: no knob has this path"},
      {"a/low=1 constant=1", "constant: no knob has this path"},
      {"a/low=1 b=1", "b: no knob has this path"},
      {"b/low=1 a/low=1 link/low=1", "link/low: given twice"},
      {"a/low=1 b/low", "'b/low': PATH=VALUE is wanted"},
      {"a/low=1 =1", "'': PATH=VALUE is wanted"},
      {"a/low=1\n\nb/low=1", "an empty line: PATH=VALUE is wanted"},
      {"", "an empty line: PATH=VALUE is wanted"},
      {"a/low=1 b/low='1", "b/low: unterminated quote"},
      {"a/low=1 b/low='1'2", "b/low: a blank is wanted after the closing quote"},
      {"a/low=1 b/low='\\x'", "b/low: ', \\ or n is wanted after a backslash"},
  };
  for (const auto& [text, reason] : refused) {
    CAPTURE(text);
    CHECK(ranges.set(text) == reason);
    CHECK(ranges.shown() == "10\n20\n10\n20\n");
  }
  CHECK(ranges.a.applied.empty());
  CHECK(ranges.b.applied.empty());
}

TEST_CASE("knobs: the defaults are the values at the time of keep_as_defaults()") {
  Ranges ranges;
  std::shared_ptr<KnobSet> set = find_knob(ranges.tree, "a/low")->set();
  CHECK(ranges.set("a/low=3") == "ok");
  CHECK(set->defaults()[0] == KnobValue(uint64_t{10}));
  set->keep_as_defaults();
  CHECK(ranges.set("a/low=4") == "ok");
  CHECK(set->defaults()[0] == KnobValue(uint64_t{3}));
}

TEST_CASE("assignments: every text survives formatting and parsing, on one line") {
  Rng rng(5, "assignments");
  const std::string_view letters = "ab= '\\\n\tx=\"$#";
  for (int round = 0; round < 5000; ++round) {
    std::vector<Assignment> all;
    for (uint64_t i = 1 + rng.below(3); i > 0; --i) {
      Assignment one{"links/a-b/" + std::to_string(rng.below(9)), ""};
      for (uint64_t length = rng.below(8); length > 0; --length) {
        one.value += letters[rng.below(letters.size())];
      }
      all.push_back(one);
    }
    std::string text = format_assignments(all);
    REQUIRE(text.find('\n') == text.npos);
    Result<std::vector<Assignment>> again = parse_assignments(text + "\n");
    REQUIRE(again);
    REQUIRE(*again == all);
  }
  CHECK(format_assignment("traffic/start", "f1 write mb_0 mb_1") ==
        "traffic/start='f1 write mb_0 mb_1'");
  CHECK(format_moment({5000000, 0}) == "@5000000");
  CHECK(format_moment({5000000, 2}) == "@5000000+2");
}

TEST_CASE("store log: the oldest lines are dropped and counted") {
  StoreLog log(40);
  log.add({1, 0}, "a=1");
  CHECK(log.text() == "@1 a=1\n");
  for (TimeNs at = 10; at < 30; ++at) log.add({at, 2}, "links/a-b/x=1");
  CHECK(log.text() == "# 19 lines dropped\n@28+2 links/a-b/x=1\n@29+2 links/a-b/x=1\n");
  log.add({30, 0}, "a=" + std::string(5000, '7'));
  CHECK(log.text().find("\n# too long to be stored again: @30 a=777") != std::string::npos);
}
