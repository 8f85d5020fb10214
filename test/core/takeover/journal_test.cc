#include "core/takeover/journal.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "core/takeover/fault.h"
#include "core/tree/dmesg.h"

using namespace rocefs;

namespace {

struct State {
  uint64_t first, second;
  char text[32];
  Dmesg::Saved log;
  FaultState faults;
};

std::unique_ptr<Journal> make_journal() {
  auto made = Journal::create(sizeof(State), 64 * 1024);
  REQUIRE(made);
  return std::move(*made);
}

void stage_all(Journal& journal, uint64_t value, const char* text) {
  State& state = journal.state<State>();
  journal.stage(state.first, value);
  journal.stage(state.text, text, std::strlen(text) + 1);
  journal.stage(state.second, value);
}

// Runs a process that commits `value` and dies at the `cut`-th step. True if it reached that step.
bool dies_at(Journal& journal, int cut, uint64_t value, const char* text) {
  pid_t pid = ::fork();
  if (pid == 0) {
    int steps = 0;
    journal.set_probe([&](Journal::Step) {
      if (steps++ == cut) ::_exit(1);
    });
    stage_all(journal, value, text);
    journal.commit();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WEXITSTATUS(status) == 1;
}

}  // namespace

TEST_CASE("journal: a staged change is not visible before the commit") {
  auto journal = make_journal();
  stage_all(*journal, 7, "seven");
  CHECK(journal->state<State>().first == 0);
  journal->commit();
  CHECK(journal->state<State>().first == 7);
  CHECK(journal->state<State>().second == 7);
  CHECK(journal->state<State>().text == std::string("seven"));
}

TEST_CASE("journal: a commit interrupted at any step takes effect completely or not at all") {
  auto journal = make_journal();
  const State& state = journal->state<State>();
  stage_all(*journal, 1, "before");
  journal->commit();
  int cut = 0;
  for (; dies_at(*journal, cut, 2, "after"); ++cut) {
    journal->recover();
    uint64_t wanted = cut == 0 ? 1 : 2;  // step 0 is the last before the commit
    CHECK(state.first == wanted);
    CHECK(state.second == wanted);
    CHECK(state.text == std::string(wanted == 1 ? "before" : "after"));
    stage_all(*journal, 1, "before");
    journal->commit();
  }
  CHECK(cut == 4);
}

TEST_CASE("journal: an interrupted recovery is repeated by the next one") {
  auto journal = make_journal();
  const State& state = journal->state<State>();
  REQUIRE(dies_at(*journal, 1, 9, "nine"));
  pid_t pid = ::fork();
  if (pid == 0) {
    journal->set_probe([](Journal::Step) { ::_exit(1); });
    journal->recover();
  }
  ::waitpid(pid, nullptr, 0);
  journal->recover();
  CHECK(state.first == 9);
  CHECK(state.second == 9);
}

TEST_CASE("journal: a before_commit() callback runs at each commit") {
  auto journal = make_journal();
  State& state = journal->state<State>();
  uint64_t count = 0;
  journal->before_commit([&] { journal->stage(state.second, ++count); });
  journal->commit();
  journal->commit();
  CHECK(state.second == 2);
}

TEST_CASE("dmesg: the next worker has each committed line once") {
  auto journal = make_journal();
  State& state = journal->state<State>();
  pid_t pid = ::fork();
  if (pid == 0) {
    Dmesg dmesg;
    dmesg.keep(*journal, state.log);
    dmesg.log(LogLevel::kInfo, 0, "one");
    journal->commit();
    dmesg.log(LogLevel::kInfo, 0, "never committed");
    ::_exit(0);
  }
  ::waitpid(pid, nullptr, 0);
  Dmesg dmesg;
  dmesg.keep(*journal, state.log);
  dmesg.log(LogLevel::kInfo, 0, "two");
  CHECK(dmesg.text() == "[    0.000000] one\n[    0.000000] two\n");
}

TEST_CASE("dmesg: when the journal is full, the newest lines are kept, each complete") {
  auto journal = make_journal();
  State& state = journal->state<State>();
  Dmesg before, after;
  before.keep(*journal, state.log);
  for (int i = 0; i < 20000; ++i) {
    before.log(LogLevel::kInfo, 0, fmt::format("line {:010}", i));
    journal->commit();
  }
  after.keep(*journal, state.log);
  std::string text = after.text();
  CHECK(before.text().ends_with(text));
  CHECK(text.starts_with("[    0.000000] line "));
  CHECK(text.size() > Dmesg::kMaxBytes / 2);
}

TEST_CASE("fault: unknown fault points and invalid counts are refused") {
  auto journal = make_journal();
  Faults faults(journal->state<State>().faults);
  for (const char* text :
       {"write", "write-", "-taken", "write-taken:0", "write-taken:x", "nowhere"}) {
    INFO(text);
    CHECK_FALSE(faults.arm(text));
  }
  CHECK(faults.arm("no-resend,write-committed:3"));
  CHECK(faults.no_resend());
}
