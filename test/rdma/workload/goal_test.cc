// Loads of pattern=goal: schedules of sends, recvs and calcs that wait for each other.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <map>

#include "test/rdma/workload/load_rig.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

class GoalFile {
 public:
  explicit GoalFile(const std::string& text) { std::ofstream(path_) << text; }
  ~GoalFile() { ::unlink(path_.c_str()); }
  Keys keys() const { return {{"pattern", "goal"}, {"file", path_}}; }
  // Reason for which it is refused, without the path.
  std::string why() const {
    std::string reason = why_not(keys());
    return reason.starts_with(path_) ? reason.substr(path_.size()) : reason;
  }

 private:
  const std::string path_ = fmt::format("/tmp/rocefs-goal.{}", ::getpid());
};

}  // namespace

TEST_CASE("goal: a send starts when what it requires has ended") {
  GoalFile file(
      "// a comment\n"
      "num_ranks 3\n"
      "rank 0 {\n"
      "l1: calc 5000\n"
      "l2: send 1000b to 1 tag 7 cpu 0 nic 0\n"
      "l2 requires l1 /* which\n takes 5 us */\n"
      "}\n"
      "rank 1{\n"
      "first: recv 1000b from 0 tag 7\n"
      "then : calc 3000\n"
      "send 2000b to 2\n"  // requires nothing
      "last: send 3000b to 2 tag 1\n"
      "then requires first\n"
      "last requires then\n"
      "}\n");
  Run run(file.keys());
  REQUIRE(run.flows.size() == 3);
  auto of = [&](uint64_t bytes) {
    return *std::find_if(run.flows.begin(), run.flows.end(),
                         [&](const Told& flow) { return flow.bytes == bytes; });
  };
  CHECK((of(1000).from == "h1" && of(1000).to == "h2" && of(1000).start == 5000));
  CHECK((of(2000).from == "h2" && of(2000).to == "h3" && of(2000).start == 0));
  CHECK((of(3000).from == "h2" && at_arrival(of(3000).start - 3000, of(1000))));
  REQUIRE(run.rounds.size() == 1);
  CHECK((run.rounds[0].start == 0 && at_arrival(run.rounds[0].end, of(3000))));
}

TEST_CASE("goal: calcs of a CPU follow one another, the round ends with the last one") {
  GoalFile file(
      "num_ranks 2\n"
      "rank 0 {\n"
      "a: calc 1000\nb: calc 2000\nc: calc 4000 cpu 1\n"
      "s: send 10b to 1\ns requires b\n"
      "i: send 20b to 1\ni irequires c\n"
      "d: calc 50000 cpu 2\nd requires s\n"
      "}\n");
  Run run(file.keys());
  REQUIRE(run.flows.size() == 2);
  CHECK((run.flows[0].bytes == 20 && run.flows[0].start == 0));
  CHECK((run.flows[1].bytes == 10 && run.flows[1].start == 3000));
  REQUIRE(run.rounds.size() == 1);
  CHECK(at_arrival(run.rounds[0].end - 50000, run.flows[1]));
}

TEST_CASE("goal: a recv takes the earliest message that fits") {
  // h1 answers the message with tag 2, which comes second, then any: the first one.
  GoalFile file(
      "num_ranks 2\n"
      "rank 0 {\n"
      "two: recv 1b from 1 tag 2\n"
      "any: recv 1b from -1 tag -1\n"
      "answer2: send 200b to 1\nanswer2 requires two\n"
      "answer1: send 100b to 1\nanswer1 requires any\n"
      "}\n"
      "rank 1 {\n"
      "a: send 11b to 0 tag 1\nb: send 12b to 0 tag 2\nb requires a\n"
      "}\n");
  Run run(file.keys());
  REQUIRE(run.flows.size() == 4);
  std::map<uint64_t, Told> flows;
  for (const Told& flow : run.flows) flows[flow.bytes] = flow;
  CHECK(at_arrival(flows[100].start, flows[11]));
  CHECK(at_arrival(flows[200].start, flows[12]));
}

TEST_CASE("goal: a schedule that cannot run is refused with its line") {
  const struct {
    const char* text;
    const char* reason;
  } kRows[] = {
      {"", ":0: num_ranks is wanted"},
      {"\xEF\xBB\xBFnum_ranks 1\n", ":1: at least two ranks are wanted"},
      {"num_ranks 1\n", ":1: at least two ranks are wanted"},
      {"num_ranks 9999999\n", ":1: 9999999 is more than 1048576"},
      {"rank 0 {\n", ":1: num_ranks is wanted before the first rank"},
      {"num_ranks 2\nrank 2 {\n", ":2: rank 2: there are ranks 0 to 1"},
      {"num_ranks 2\nrank 0 {\n", ":2: the rank has no } at its end"},
      {"num_ranks 2\nsend 1b to 1\n", ":2: 'send': num_ranks N or rank R { is wanted"},
      {"num_ranks 2\nrank 0 {\n}\n", ":3: no rank has an operation"},
      {"num_ranks 2\nrank 0 {\nput 1b to 1\n",
       ":3: 'put': send, recv, calc, or LABEL requires LABEL is wanted"},
      {"num_ranks 2\nrank 0 {\nsend 1 to 1\n", ":3: '1': Nb is wanted"},
      {"num_ranks 2\nrank 0 {\nsend 1b from 1\n", ":3: 'from': to is wanted"},
      {"num_ranks 2\nrank 0 {\nsend 1b to 0\n", ":3: rank 0 sends to itself"},
      {"num_ranks 2\nrank 0 {\nsend 1b to -1\n", ":3: '-1': a number is wanted"},
      {"num_ranks 2\nrank 0 {\nsend 1b\n", ":3: send Nb to RANK is wanted"},
      {"num_ranks 2\nrank 0 {\nsend 1b to 1 tag\n", ":3: tag: a number is wanted"},
      {"num_ranks 2\nrank 0 {\ncalc 1 tag 2\n", ":3: 'tag': cpu or nic is wanted"},
      {"num_ranks 2\nrank 0 {\na: calc 1\na: calc 1\n", ":4: 'a' stands before two operations"},
      {"num_ranks 2\nrank 0 {\na: calc 1\na requires b\n", ":4: 'b' is no label above"},
      {"num_ranks 2\nrank 0 {\ncalc 1\n}\n", ": no rank sends"},
      {"num_ranks 2\nrank 0 {\nsend 9999999999b to 1\n}\n",
       ":3: a flow has at most 1073741824 octets"},
      {"num_ranks 2\nrank 0 {\nsend 1b to 1\n}\nrank 1 {\nrecv 1b from 0 tag 3\n}\n",
       ":6: this recv of rank 1 waits for ever: no message is left for it, or it waits in a "
       "circle"},
      {"num_ranks 2\nrank 0 {\na: send 1b to 1\nb: send 1b to 1\na requires b\nb requires a\n}\n",
       ":3: this operation of rank 0 waits for ever: what it requires never ends"},
  };
  for (const auto& row : kRows) {
    INFO(row.text);
    CHECK(GoalFile(row.text).why() == row.reason);
  }
  GoalFile nine("num_ranks 9\nrank 0 {\nsend 1b to 1\n}\n");
  CHECK(nine.why() == ": 9 ranks, but hosts= has 8");
  Keys keys = nine.keys();
  keys.push_back({"size", "1M"});
  CHECK(why_not(keys) == "size= does not go with pattern=goal");
}
