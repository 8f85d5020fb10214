#include "core/tree/schedule_keeper.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "core/tree/store_log.h"

using namespace rocefs;

namespace {

struct State {
  SavedSchedule schedule;
  SavedRing<1000> ring;
};

std::unique_ptr<Journal> make_journal() {
  auto made = Journal::create(sizeof(State), 64 * 1024);
  REQUIRE(made);
  return std::move(*made);
}

ScheduledStore store_of(TimeNs at, std::string text) {
  return {{at, 3}, {1, 2, 4}, true, std::move(text)};
}

// The schedule that a successor finds: TIME TEXT, one line each.
std::string left(Journal& journal) {
  journal.recover();
  std::string text;
  uint64_t name = 0;
  ScheduleKeeper keeper(journal, journal.state<State>().schedule);
  keeper.restore([&](const ScheduledStore& store) {
    text += fmt::format("{} {}\n", store.moment.at, store.text);
    CHECK(store.moment.events == 3);
    CHECK((store.caller.uid == 1 && store.caller.gid == 2 && store.caller.pid == 4));
    CHECK(store.knobs);
    return ++name;
  });
  return text;
}

// A worker that takes over, adds and removes, and dies at the `cut`-th step of the commits.
bool dies_at(Journal& journal, int cut) {
  pid_t pid = ::fork();
  if (pid == 0) {
    journal.recover();
    int steps = 0;
    journal.set_probe([&](Journal::Step) {
      if (steps++ == cut) ::_exit(1);
    });
    ScheduleKeeper keeper(journal, journal.state<State>().schedule);
    uint64_t name = 0;
    keeper.restore([&](const ScheduledStore&) { return ++name; });
    keeper.add(++name, store_of(3, "c"));
    keeper.remove(1);
    keeper.commit();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WEXITSTATUS(status) == 1;
}

}  // namespace

TEST_CASE(
    "schedule keeper: a commit interrupted at any step takes effect completely or not at all") {
  for (int cut = 0, died = 1; died; ++cut) {
    auto journal = make_journal();
    {
      ScheduleKeeper keeper(*journal, journal->state<State>().schedule);
      keeper.add(1, store_of(1, "a"));
      keeper.add(2, store_of(2, "b"));
      keeper.commit();
    }
    died = dies_at(*journal, cut);
    INFO(cut);
    CHECK(left(*journal) == (cut == 0 ? "1 a\n2 b\n" : "2 b\n3 c\n"));
    CHECK(cut < 4);
  }
}

TEST_CASE(
    "schedule keeper: an uncommitted store is not restored, and is replaced by the next one") {
  auto journal = make_journal();
  {
    ScheduleKeeper keeper(*journal, journal->state<State>().schedule);
    keeper.add(1, store_of(1, "a"));
    keeper.commit();
    keeper.add(2, store_of(2, "never committed"));
  }
  CHECK(left(*journal) == "1 a\n");
  ScheduleKeeper keeper(*journal, journal->state<State>().schedule);
  keeper.restore([](const ScheduledStore&) { return 1; });
  keeper.add(2, store_of(2, "b"));
  keeper.remove(7);
  keeper.commit();
  CHECK(left(*journal) == "1 a\n2 b\n");
  keeper.clear();
  CHECK(left(*journal).empty());
}

TEST_CASE("schedule keeper: only waiting stores count against its capacity, not removed ones") {
  auto journal = make_journal();
  ScheduleKeeper keeper(*journal, journal->state<State>().schedule);
  const std::string text(4000, 'x');
  uint64_t name = 1;
  keeper.add(name, store_of(1, "the first"));
  // Many times its capacity is added and removed.
  for (int i = 0; i < 20'000; ++i) {
    REQUIRE(keeper.add(++name, store_of(2, text)));
    keeper.remove(name);
    keeper.commit();
  }
  CHECK(left(*journal).starts_with("1 the first\n"));
  uint64_t waits = 0;
  while (keeper.add(++name, store_of(3, text))) {
    keeper.commit();
    ++waits;
  }
  CHECK(waits > SavedSchedule::kHalf / 4200);
  CHECK(left(*journal).starts_with("1 the first\n"));
  CHECK_FALSE(keeper.add(++name, store_of(4, text)));
  keeper.remove(2 + 20'000);
  CHECK(keeper.add(++name, store_of(4, text)));
}

TEST_CASE("line log: uncommitted lines never overwrite committed ones") {
  auto journal = make_journal();
  auto& ring = journal->state<State>().ring;
  LineLog before(1000);
  before.keep(*journal, ring);
  for (int i = 0; i < 10'000; ++i) {
    before.add(fmt::format("line {:08}\n", i));
    if (i % 2000 == 1) journal->commit();
    if (i % 100 != 0) continue;
    LineLog after(1000);
    auto found = std::make_unique<SavedRing<1000>>(ring);
    auto other = make_journal();
    after.keep(*other, *found);
    std::string text = after.text();
    REQUIRE(text.size() % 14 == 0);
    for (size_t at = 0; at < text.size(); at += 14) REQUIRE(text.substr(at, 5) == "line ");
  }
  journal->commit();
  LineLog after(1000);
  after.keep(*journal, ring);
  CHECK(after.text() == before.text());
  CHECK(after.dropped() == before.dropped());
}

TEST_CASE("store log: a successor shows the committed stores and notes") {
  auto made = Journal::create(sizeof(StoreLog::Saved), 64 * 1024);
  REQUIRE(made);
  auto& saved = (*made)->state<StoreLog::Saved>();
  StoreLog before, after;
  before.keep(**made, saved);
  before.add({5, 0}, "a=1");
  before.note({7, 1}, "here");
  (*made)->commit();
  before.add({9, 0}, "never=committed");
  after.keep(**made, saved);
  CHECK(after.text() == "@5 a=1\n# @7+1 here\n");
}
