// Consequences: a store of one knob that changes others in the same transaction.
#include <catch2/catch.hpp>

#include "core/base/assignment.h"
#include "core/takeover/journal.h"
#include "core/tree/knob.h"
#include "core/tree/knob_file.h"
#include "core/tree/knob_transaction.h"
#include "core/tree/reset.h"
#include "core/tree/tree_keeper.h"

using namespace rocefs;

namespace {

constexpr KnobRow kMode[] = {
    {"other", KnobType::kUint, 0, 100, "0", "", "", "has no consequences"},
    {"mode", KnobType::kWord, 0, 0, "small", "small large wrong", "", "what limits begin with"},
};
constexpr KnobRow kLimits[] = {
    {"limit", KnobType::kUint, 0, 100, "10", "", "", "at most"},
    {"large", KnobType::kBool, 0, 1, "0", "", "", "whether limit may be above 50; it has no file"},
};
constexpr uint64_t kStart[] = {10, 60, 60};  // by mode; in `wrong` it is not large

uint64_t number(const KnobValue& value) {
  return std::get<uint64_t>(value);
}

class Limits final : public KnobOwner {
 public:
  Result<void> check(std::span<const KnobValue> proposed) const override {
    if (number(proposed[0]) <= 50 || number(proposed[1]) == 1) return {};
    return Error{EINVAL, "above 50"};
  }
  void apply(std::span<const KnobValue> values) override {
    applied.emplace_back(number(values[0]), number(values[1]));
  }
  std::vector<std::pair<uint64_t, uint64_t>> applied;
};

// mode, a/limit and b/limit. The engine does not run: answers come at once.
struct Modes {
  Modes() {
    auto created = Engine::create({ClockMode::kVirtual, 1}, loop);
    REQUIRE(created);
    engine = std::move(*created);
    mode = std::make_shared<KnobSet>(kMode, *engine, nullptr);
    add_knob_files(tree, "m", mode);
    for (size_t i = 0; i < 2; ++i) {
      sets[i] = std::make_shared<KnobSet>(kLimits, *engine, &owners[i]);
      add_knob_file(tree, i == 0 ? "a" : "b", std::make_shared<KnobFile>(sets[i], 0));
      sets[i]->on_change([this] { ++changes; });
    }
    mode->set_consequences(1, [this](const KnobValue& value) {
      std::vector<KnobChange> brought;
      for (const auto& set : sets) {
        brought.push_back({set, 0, kStart[number(value)], {}});
        brought.push_back({set, 1, uint64_t{number(value) == 1}, {}});
      }
      return brought;
    });
    add_reset_file(tree, "r", *engine, {});
  }
  std::string store(const char* path, std::string_view text) {
    std::string said = "nothing";
    tree.resolve(path)->file->store(
        text, std::make_shared<Operation>(Caller{}),
        [&](Result<void> result) { said = result ? "ok" : result.error().reason; });
    return said;
  }
  std::string set(std::string_view text) {
    std::string said = "nothing";
    store_knobs(*engine, *knob_changes(tree, *parse_assignments(text)),
                [&](Result<Moment> result) { said = result ? "ok" : result.error().reason; });
    return said;
  }
  std::string shown() {
    return *find_knob(tree, "m/mode")->show() + *find_knob(tree, "a/limit")->show() +
           *find_knob(tree, "b/limit")->show();
  }

  PollLoop loop;
  std::unique_ptr<Engine> engine;
  Tree tree{0, 0};
  Limits owners[2];
  std::shared_ptr<KnobSet> mode, sets[2];
  int changes = 0;
};

}  // namespace

TEST_CASE("consequences: a store changes the dependent sets too, each applied once") {
  Modes modes;
  CHECK(modes.store("m/mode", "large\n") == "ok");
  CHECK(modes.shown() == "large\n60\n60\n");
  for (const Limits& owner : modes.owners) {
    CHECK(owner.applied == std::vector<std::pair<uint64_t, uint64_t>>{{60, 1}});
  }
  CHECK(modes.changes == 4);
  CHECK(modes.store("a/limit", "70") == "ok");
  CHECK(modes.store("m/mode", "large") == "ok");  // an unchanged value as well
  CHECK(modes.shown() == "large\n60\n60\n");
}

TEST_CASE("consequences: other knobs of the same set have no consequences") {
  Modes modes;
  CHECK(modes.store("a/limit", "20") == "ok");
  CHECK(modes.store("m/other", "1") == "ok");
  CHECK(modes.shown() == "small\n20\n10\n");
}

TEST_CASE("consequences: a refused consequence refuses the whole store") {
  Modes modes;
  CHECK(modes.store("m/mode", "wrong") == "above 50");
  CHECK(modes.shown() == "small\n10\n10\n");
  CHECK(modes.owners[0].applied.empty());
  CHECK(modes.changes == 0);
}

TEST_CASE("consequences: explicit values of a transaction override consequences, in any order") {
  for (const char* text : {"m/mode=large a/limit=99", "a/limit=99 m/mode=large"}) {
    Modes modes;
    CHECK(modes.set(text) == "ok");
    CHECK(modes.shown() == "large\n99\n60\n");
  }
}

TEST_CASE("consequences: a reset restores the defaults of all sets") {
  Modes modes;
  CHECK(modes.store("a/limit", "20") == "ok");
  modes.sets[0]->keep_as_defaults();
  CHECK(modes.store("m/mode", "large") == "ok");
  CHECK(modes.store("b/limit", "99") == "ok");
  modes.sets[1]->set_defaults({KnobValue(uint64_t{7}), KnobValue(uint64_t{0})});
  CHECK(modes.store("r/reset", "1") == "ok");
  CHECK(modes.shown() == "small\n20\n7\n");
  CHECK(modes.owners[0].applied.back() == std::pair<uint64_t, uint64_t>{20, 0});
}

TEST_CASE("consequences: a successor restores consequences and the values set after them") {
  auto journal = Journal::create(sizeof(SavedTree), SavedTree::kMaxTransaction);
  REQUIRE(journal);
  SavedTree& saved = (*journal)->state<SavedTree>();
  auto watched = [&](const std::function<void(Modes&)>& act) {
    Modes modes;
    TreeKeeper keeper(**journal, saved, modes.tree, modes.loop);
    CHECK(keeper.restore().empty());
    std::string restored = modes.shown();
    keeper.watch();
    act(modes);
    (*journal)->commit();
    return restored;
  };
  watched([](Modes& modes) {
    CHECK(modes.store("a/limit", "20") == "ok");
    CHECK(modes.store("m/mode", "large") == "ok");
    CHECK(modes.store("a/limit", "30") == "ok");
  });
  CHECK(saved.count == 3);
  CHECK(watched([](Modes&) {}) == "large\n30\n60\n");
}

TEST_CASE("guards: a store by a user is refused, of the kept value too; all else passes") {
  Modes modes;
  bool held = true;
  modes.sets[0]->set_guard(0, [&held]() -> Result<void> {
    if (held) return Error{EBUSY, "it is held"};
    return {};
  });
  CHECK(modes.store("a/limit", "10") == "it is held");
  CHECK(modes.set("b/limit=20 a/limit=10") == "a/limit: it is held");
  CHECK(modes.set("a/limit=90") == "a/limit: it is held");  // before the owner is asked
  CHECK(modes.shown() == "small\n10\n10\n");
  CHECK(modes.set("b/limit=20") == "ok");
  CHECK(modes.set("m/mode=large") == "ok");
  CHECK(modes.shown() == "large\n60\n60\n");
  CHECK(modes.store("r/reset", "1") == "ok");
  CHECK(modes.shown() == "small\n10\n10\n");
  held = false;
  CHECK(modes.store("a/limit", "11") == "ok");
}
