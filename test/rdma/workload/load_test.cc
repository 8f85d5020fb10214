// Loads: which flows start when, and what is refused.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <set>

#include "test/rdma/workload/load_rig.h"

using namespace rocefs;
using namespace rocefs::test;

TEST_CASE("load: a Poisson load has the load that was asked for, spread over all hosts") {
  const Keys keys = {{"pattern", "poisson"}, {"load", "0.3"}, {"size", "10000"}, {"flows", "4000"}};
  Run run(keys);
  REQUIRE(run.flows.size() == 4000);
  std::map<std::string, int> from, to;
  TimeNs last = 0;
  for (const Told& flow : run.flows) {
    CHECK(flow.done);
    CHECK(flow.from != flow.to);
    ++from[flow.from];
    ++to[flow.to];
    last = std::max(last, flow.start);
  }
  // 8 hosts, 0.3 x 10 Gb/s each: 80,000 bits every 26.67 us a host. The time of 4,000 flows has a
  // standard deviation of 1/sqrt(4000), 1.6 %.
  CHECK(static_cast<double>(last) == Approx(4000 / 8 * 26'667).epsilon(0.05));
  // A host's number of flows: 500, standard deviation sqrt(500) = 22.
  for (const auto& [host, count] : from) CHECK(count == Approx(500).margin(90));
  for (const auto& [host, count] : to) CHECK(count == Approx(500).margin(90));
  CHECK(from.size() == 8);

  CHECK(run.flows == Run(keys).flows);
  CHECK_FALSE(run.flows == Run(keys, 8, 2).flows);
}

TEST_CASE("load: the flows of a host do not depend on the other hosts") {
  auto starts_of_h1 = [](const char* some) {
    Run run({{"pattern", "poisson"},
             {"load", "0.1"},
             {"size", "1000"},
             {"until", "2ms"},
             {"hosts", some}});
    std::vector<TimeNs> starts;
    for (const Told& flow : run.flows) {
      if (flow.from == "h1") starts.push_back(flow.start);
    }
    return starts;
  };
  std::vector<TimeNs> few = starts_of_h1("h1 h2");
  CHECK(few.size() > 100);
  CHECK(few == starts_of_h1("h{1..8}"));
}

TEST_CASE("load: an incast's rounds have so many senders, at their times") {
  Run run({{"pattern", "incast"},
           {"senders", "5"},
           {"size", "20000"},
           {"interval", "1ms"},
           {"rounds", "3"},
           {"to", "h2 h3"}});
  REQUIRE(run.flows.size() == 15);
  std::map<TimeNs, std::set<std::string>> senders;
  for (const Told& flow : run.flows) {
    senders[flow.start].insert(flow.from);
    CHECK(flow.to == (flow.start == kMillisecond ? "h3" : "h2"));
    CHECK(flow.from != flow.to);
  }
  REQUIRE(senders.size() == 3);
  for (TimeNs round = 0; round < 3; ++round) CHECK(senders[round * kMillisecond].size() == 5);
}

TEST_CASE("load: in a permutation each host sends once and receives once, each round anew") {
  Run run({{"pattern", "permutation"}, {"size", "50000"}, {"rounds", "3"}, {"gap", "100us"}});
  REQUIRE(run.flows.size() == 24);
  REQUIRE(run.rounds.size() == 3);
  std::set<std::set<std::pair<std::string, std::string>>> permutations;
  for (size_t round = 0; round < 3; ++round) {
    std::set<std::string> from, to;
    std::set<std::pair<std::string, std::string>> pairs;
    for (size_t i = round * 8; i < round * 8 + 8; ++i) {
      const Told& flow = run.flows[i];
      CHECK(flow.start == run.rounds[round].start);
      from.insert(flow.from);
      to.insert(flow.to);
      pairs.insert({flow.from, flow.to});
    }
    CHECK(from.size() == 8);
    CHECK(to.size() == 8);
    permutations.insert(pairs);
    if (round > 0) CHECK(run.rounds[round].start == run.rounds[round - 1].end + 100 * kMicrosecond);
  }
  CHECK(permutations.size() > 1);
}

TEST_CASE("load: an all-to-all has each pair once, and so many flows of a host at a time") {
  for (unsigned parallel : {1u, 3u, 100u}) {
    Run run({{"pattern", "all-to-all"}, {"size", "4096"}, {"parallel", std::to_string(parallel)}});
    std::set<std::pair<std::string, std::string>> pairs;
    for (const Told& flow : run.flows) pairs.insert({flow.from, flow.to});
    CHECK(run.flows.size() == 56);
    CHECK(pairs.size() == 56);
    CHECK(run.rounds.size() == 1);
    CHECK(run.most_at_once == 8 * std::min(parallel, 7u));
  }
}

TEST_CASE("load: a ring all-reduce takes 2 (N - 1) steps of an N-th, each after the one before") {
  Run run({{"pattern", "ring-allreduce"}, {"size", "800000"}});
  CHECK(run.flows.size() == 8 * 14);
  // An acknowledgement may wait for another one at the switch.
  constexpr TimeNs kLatest = kAcknowledgement + 69;
  std::map<std::string, std::vector<Told>> by_sender;
  for (const Told& flow : run.flows) {
    CHECK(flow.bytes == 100'000);
    by_sender[flow.from].push_back(flow);
  }
  for (unsigned host = 0; host < 8; ++host) {
    const std::vector<Told>& own = by_sender[fmt::format("h{}", host + 1)];
    const std::vector<Told>& before = by_sender[fmt::format("h{}", (host + 7) % 8 + 1)];
    REQUIRE(own.size() == 14);
    for (size_t step = 1; step < 14; ++step) {
      CHECK(own[step].start >= own[step - 1].end - kLatest);
      CHECK(own[step].start >= before[step - 1].end - kLatest);
    }
  }
  REQUIRE(run.rounds.size() == 1);
  // Each host sends 14 x 100,000 octets at 10 Gb/s, 1.12 ms, and headers, and waits 14 times for
  // the last packet, which takes 3.4 us to a cable and two cables of 1 us.
  CHECK(static_cast<double>(run.rounds[0].end) == Approx(1.22e6).epsilon(0.02));
}

TEST_CASE("load: a step of an all-reduce takes the way there, not the acknowledgement's way back") {
  // Octets with Ethernet's 38, of a packet of one octet and of an acknowledgement, which leaves a
  // host ahead of what that sends next.
  const double way = 2 * (1000 + 102 * 0.8), acknowledgement = 86 * 0.8;
  Run ring({{"pattern", "ring-allreduce"}, {"size", "8"}});
  REQUIRE(ring.rounds.size() == 1);
  CHECK(static_cast<double>(ring.rounds[0].end) ==
        Approx(14 * way + 13 * acknowledgement).epsilon(0.001));
  Run tree({{"pattern", "tree-allreduce"}, {"size", "1"}});
  REQUIRE(tree.rounds.size() == 1);
  // Three levels up and three down; two children's packets meet at a port once or twice.
  CHECK(static_cast<double>(tree.rounds[0].end) == Approx(6 * way).epsilon(0.06));
}

TEST_CASE("load: a tree all-reduce reduces up and broadcasts down") {
  for (unsigned count : {2u, 3u, 7u, 8u}) {
    INFO(count);
    Run run({{"pattern", "tree-allreduce"}, {"size", "10000"}}, count);
    REQUIRE(run.flows.size() == 2 * (count - 1));
    REQUIRE(run.rounds.size() == 1);
    std::set<std::pair<std::string, std::string>> up, down;
    TimeNs reduced = 0;
    for (const Told& flow : run.flows) {
      bool rises = flow.from > flow.to;
      (rises ? up : down).insert({flow.from, flow.to});
      if (flow.to == "h1") reduced = std::max(reduced, flow.end - kAcknowledgement - 69);
      if (flow.from == "h1") CHECK(flow.start >= reduced);
    }
    CHECK(up.size() == count - 1);
    CHECK(down.size() == count - 1);
  }
}

TEST_CASE("load: a trace's flows start at their times") {
  const std::string path = fmt::format("/tmp/rocefs_load_test.{}.csv", ::getpid());
  std::ofstream(path)
      << "time,from,to,size\n# warm up\n0,h1,h2,1000\n5us, h3, h1, 4K\n5us,h2,h1,64\n";
  Run run({{"pattern", "trace"}, {"file", path}, {"start", "1us"}});
  std::set<std::tuple<std::string, std::string, uint64_t, TimeNs>> flows;
  for (const Told& flow : run.flows) flows.insert({flow.from, flow.to, flow.bytes, flow.start});
  CHECK(flows == decltype(flows){
                     {"h1", "h2", 1000, 1000}, {"h3", "h1", 4096, 6000}, {"h2", "h1", 64, 6000}});

  auto refused = [&](const char* text) {
    std::ofstream(path, std::ios::trunc) << text;
    return why_not({{"pattern", "trace"}, {"file", path}});
  };
  CHECK(refused("0,h1,h2\n") == path + ":1: TIME,FROM,TO,SIZE is wanted");
  CHECK(refused("0,h1,h2,1\n0,h1,h9,1\n") == path + ":2: no device h9");
  CHECK(refused("0,h1,h1,1\n") == path + ":1: h1 sends to itself");
  CHECK(refused("5,h1,h2,1\n4,h1,h2,1\n") == path + ":2: earlier than the line before");
  CHECK(refused("5 parsecs,h1,h2,1\n") == path + ":1: TIME,FROM,TO,SIZE is wanted");
  CHECK(refused("0,h1,h2,2G\n") == path + ":1: size 2G: a flow has 1 to 1073741824 octets");
  CHECK(refused("0,h1,h2,0\n") == path + ":1: size 0: a flow has 1 to 1073741824 octets");
  for (const char* gap : {"0,,h1,h2,1\n", ",0,h1,h2,1\n", "0,h1,h2,1,\n", "0,h1, ,h2,1\n"}) {
    CHECK(refused(gap) == path + ":1: TIME,FROM,TO,SIZE is wanted");
  }
  CHECK(refused("0 h1 h2 1\n").empty());
  CHECK(refused("Time (us),From,To,Size\n0,h1,h2,1\n").empty());
  CHECK(refused("time,from,to,size\n") == path + ": no flows");
  CHECK(refused("\xEF\xBB\xBF"
                "time,from,to,size\n0,h1,h2,1\n")
            .empty());
  ::unlink(path.c_str());
}

TEST_CASE("load: the number of flows to come is told where it is known, else guessed by the time") {
  World world(1, star(4, kRate));
  struct Ignored final : WorkloadListener {
    void load_flow_ended(const LoadFlow&) override {}
    void load_round_ended(const Load&, const RoundTimes&) override {}
  } ignored;
  auto expected = [&](const Keys& keys, TimeNs now) {
    std::vector<Load> loads;
    Result<Load> load = load_of(keys, 4);
    REQUIRE(load);
    loads.push_back(std::move(*load));
    Workload workload(world.fabric, std::move(loads), ignored);
    if (now > world.scheduler.now()) {
      workload.begin();
      world.scheduler.run_until(now);
    }
    uint64_t flows = workload.expected(now), started = workload.started();
    CHECK(started <= flows);
    workload.stop();
    return flows;
  };
  const std::pair<std::string, std::string> size{"size", "1000"};
  CHECK(expected({{"pattern", "poisson"}, {"load", "0.5"}, size, {"flows", "77"}}, 0) == 77);
  CHECK(expected({{"pattern", "incast"}, {"interval", "1ms"}, {"rounds", "5"}, size}, 0) == 15);
  CHECK(expected({{"pattern", "permutation"}, {"rounds", "5"}, size}, 0) == 20);
  CHECK(expected({{"pattern", "all-to-all"}, {"rounds", "2"}, size}, 0) == 24);
  CHECK(expected({{"pattern", "ring-allreduce"}, size}, 0) == 4 * 6);
  CHECK(expected({{"pattern", "tree-allreduce"}, size}, 0) == 6);
  CHECK(expected({{"pattern", "all-to-all"}, {"flows", "7"}, size}, 0) == 7);
  // A host sends 1000 octets every 1.6 us: 2,500 flows of 4 hosts in 1 ms.
  const Keys timed = {{"pattern", "poisson"}, {"load", "0.5"}, size, {"until", "1ms"}};
  CHECK(static_cast<double>(expected(timed, 200 * kMicrosecond)) == Approx(2500).epsilon(0.2));
  // The same rate for 200 us, of which half are over.
  const Keys late = {
      {"pattern", "poisson"}, {"load", "0.5"}, size, {"start", "300us"}, {"until", "500us"}};
  CHECK(static_cast<double>(expected(late, 400 * kMicrosecond)) == Approx(500).epsilon(0.2));
  CHECK(expected({{"pattern", "poisson"}, {"load", "0.5"}, size, {"until", "1us"}}, kSecond) < 10);
}

TEST_CASE("load: a Poisson load keeps its rate after years of engine time") {
  // 1e17 ns: doubles are 16 ns apart there, more than the mean gap of a host.
  Result<Load> load = load_of({{"pattern", "poisson"},
                               {"load", "1"},
                               {"size", "4"},
                               {"flows", "1"},
                               {"start", "100000000s"}});
  REQUIRE(load);
  constexpr int kFlows = 20'000;
  const TimeNs begin = 100'000'000 * kSecond;
  for (int i = 0; i < kFlows; ++i) (void)load->pattern->take();
  const double mean_gap = 4 * 8e9 / kRate / 8;
  // Standard deviation of the sum: 0.7 %.
  CHECK(static_cast<double>(load->pattern->due() - begin) ==
        Approx(kFlows * mean_gap).epsilon(0.03));
}

TEST_CASE("load: flows beyond a limit fail a moment after their start, and the others go on") {
  World world(1, star(4, kRate));
  struct Ends final : WorkloadListener {
    size_t done = 0;
    std::vector<TimeNs> failed;  // how long each took
    void load_flow_ended(const LoadFlow& flow) override {
      if (flow.result) {
        ++done;
      } else {
        CHECK(flow.result.error().code == EMFILE);
        failed.push_back(flow.end - flow.start);
      }
    }
    void load_round_ended(const Load&, const RoundTimes&) override {}
  } ends;
  std::vector<Load> loads;
  loads.push_back(std::move(*load_of({{"pattern", "permutation"}, {"size", "1M"}}, 4)));
  Workload workload(world.fabric, std::move(loads), ends, {{}, 3});
  workload.begin();
  while (!workload.over()) REQUIRE(world.scheduler.run_one(kSecond));
  CHECK(ends.done == 3);
  CHECK(ends.failed == std::vector<TimeNs>{kMicrosecond});
}

TEST_CASE("load: flows that fail are told, and do not hold up the others") {
  World world(1, star(3, kRate));
  struct Told final : WorkloadListener {
    int done = 0, failed = 0;
    void load_flow_ended(const LoadFlow& flow) override { ++(flow.result ? done : failed); }
    void load_round_ended(const Load&, const RoundTimes&) override {}
  } told;
  Result<Load> load =
      load_of({{"pattern", "all-to-all"}, {"size", "1000"}, {"timeout", "8"}, {"retry", "1"}}, 3);
  REQUIRE(load);
  std::vector<Load> loads;
  loads.push_back(std::move(*load));
  Workload workload(world.fabric, std::move(loads), told);
  set(world.link("h3-s"), lossy(world.link("h3-s").parameters(), 1));
  workload.begin();
  while (!workload.over()) REQUIRE(world.scheduler.run_one(10 * kSecond));
  // Two of the six flows are between h1 and h2; the others send from h3, or wait for its answers.
  CHECK(told.done == 2);
  CHECK(told.failed == 4);
}

// A device without a driver refuses queue pairs.
TEST_CASE("load: a collective that cannot start its flows does not hold up the clock") {
  World world(1, star(2, kRate));
  struct Told final : WorkloadListener {
    uint64_t failed = 0;
    void load_flow_ended(const LoadFlow& flow) override { failed += !flow.result; }
    void load_round_ended(const Load&, const RoundTimes&) override {}
  } told;
  Result<Load> load =
      load_of({{"pattern", "permutation"}, {"size", "1K"}, {"rounds", "1000000"}}, 2);
  REQUIRE(load);
  std::vector<Load> loads;
  loads.push_back(std::move(*load));
  Workload workload(world.fabric, std::move(loads), told);
  world.device("h2").leave();
  workload.begin();
  world.scheduler.run_until(kMillisecond);
  // Two flows fail each microsecond.
  CHECK(told.failed == 2000);
  CHECK_FALSE(workload.over());
}

TEST_CASE("load: stopped in the middle, it leaves nothing behind") {
  World world(1, star(8, kRate));
  struct Ignores final : WorkloadListener {
    void load_flow_ended(const LoadFlow&) override {}
    void load_round_ended(const Load&, const RoundTimes&) override {}
  } ignores;
  Result<Load> load = load_of({{"pattern", "all-to-all"}, {"size", "1M"}, {"parallel", "7"}});
  REQUIRE(load);
  std::vector<Load> loads;
  loads.push_back(std::move(*load));
  Workload workload(world.fabric, std::move(loads), ignores);
  workload.begin();
  world.scheduler.run_until(kMillisecond);
  int running = 0;
  workload.each_running([&](const LoadFlow&) { ++running; });
  CHECK(running == 56);
  workload.stop();
  CHECK(workload.over());
  CHECK(world.run_idle());
}

TEST_CASE("load: what cannot be is refused") {
  CHECK(why_not({}).starts_with("pattern= is wanted: poisson, incast"));
  CHECK(why_not({{"pattern", "possion"}}).starts_with("pattern: 'possion': poisson, incast"));
  CHECK(why_not({{"speed", "1"}}).starts_with("unknown key speed in [load]: pattern, hosts"));
  const Keys poisson = {{"pattern", "poisson"}, {"size", "1K"}, {"flows", "5"}};
  auto with = [&](std::string key, std::string value) {
    Keys keys = poisson;
    keys.emplace_back(std::move(key), std::move(value));
    return why_not(keys);
  };
  CHECK(why_not(poisson) == "load= is wanted: the share of a host's rate");
  CHECK(with("load", "1.2") ==
        "load: 1.2 of a host's rate cannot be: above 0, at most 1 is wanted");
  CHECK(with("load", "0") == "load: 0 of a host's rate cannot be: above 0, at most 1 is wanted");
  CHECK(with("hosts", "h1 h77") == "hosts: no device h77");
  CHECK(with("hosts", "h1 h1") == "hosts: h1 twice");
  CHECK(with("hosts", "h1") == "hosts: at least two are wanted");
  CHECK(with("hosts", "h{1..9999999}") ==
        "hosts: 'h{1..9999999}' stands for more than 25600 names");
  CHECK(why_not({{"pattern", "poisson"}, {"load", "1"}, {"size", "1"}, {"flows", "5"}})
            .starts_with("a flow of 1 octets each 0."));
  CHECK(with("cdf", "websearch") == "size= and cdf=: one of them");
  CHECK(with("parallel", "2") == "parallel= does not go with pattern=poisson");
  CHECK(with("op", "ud") == "op: ud: write, send or read is wanted");
  CHECK(why_not({{"pattern", "incast"}, {"size", "1K"}, {"op", "read"}}) ==
        "op=read does not go with pattern=incast: its octets would go the other way");
  CHECK(why_not({{"pattern", "ring-allreduce"}, {"size", "1K"}, {"op", "read"}}) ==
        "op=read does not go with pattern=ring-allreduce: its octets would go the other way");
  CHECK(with("flows", "0") == "flows: 0 is less than 1");
  CHECK(with("start", "soon").starts_with("start: "));
  CHECK(with("until", "0") == "start= is not before until=");
  CHECK(why_not({{"pattern", "incast"}, {"size", "1K"}, {"start", "9us"}, {"until", "9us"}}) ==
        "start= is not before until=");
  CHECK(why_not(
            {{"pattern", "poisson"}, {"load", "0.5"}, {"cdf", "./no_such_file"}, {"flows", "5"}}) ==
        "cdf: ./no_such_file: No such file or directory");
  CHECK(why_not({{"pattern", "poisson"}, {"load", "0.5"}, {"size", "1K"}}) ==
        "until= or flows= is wanted, or [sim] until=: else it never ends");
  CHECK(why_not({{"pattern", "incast"}, {"size", "1K"}, {"senders", "8"}}) ==
        "senders=8: 7 hosts can send to one");
  CHECK(why_not({{"pattern", "incast"}, {"size", "1K"}, {"rounds", "2"}}) ==
        "interval= is wanted with rounds=2");
  CHECK(why_not({{"pattern", "incast"}, {"size", "1K"}, {"interval", "1ms"}}) ==
        "rounds=, until= or flows= is wanted with interval=: else it never ends");
  Keys late = {{"pattern", "incast"}, {"size", "1K"}, {"interval", "10us"}, {"jitter", "11us"}};
  late.emplace_back("rounds", "2");
  CHECK(why_not(late) == "jitter=11us is longer than interval=10us");
  late.back().second = "1";
  CHECK(why_not(late).empty());
  CHECK(why_not({{"pattern", "incast"}, {"size", "1K"}, {"hosts", "h1 h2"}, {"to", "h3"}}) ==
        "to: h3 is none of hosts=");
  CHECK(why_not({{"pattern", "all-to-all"}}) == "size= is wanted");
  CHECK(why_not({{"pattern", "all-to-all"}, {"size", "0"}}) == "size=0 is outside 1 to 1073741824");
}

TEST_CASE("load: a flow may be as large as a message of traffic/start") {
  for (const char* op : {"write", "send", "read"}) {
    const Keys keys = {{"pattern", "permutation"}, {"size", "1G"}, {"op", op}};
    if (*op != 'r') CHECK(why_not(keys).empty());
    FlowSpec flow;
    REQUIRE(set_flow_key(flow, "size", std::to_string(kMaxLoadFlow)));
    CHECK_FALSE(set_flow_key(flow, "size", std::to_string(kMaxLoadFlow + 1)));
    flow.op = *parse_flow_op(op);
    CHECK(FlowPlan::of(flow, std::nullopt));
  }
  CHECK(why_not({{"pattern", "permutation"}, {"size", "1073741825"}}) ==
        "size=1073741825 is outside 1 to 1073741824");
}

TEST_CASE("load: a reset removes the flows that run, and a collective goes on") {
  struct Ends final : WorkloadListener {
    std::vector<TimeNs> removed, done;
    size_t rounds = 0;
    void load_flow_ended(const LoadFlow& flow) override {
      (flow.removed ? removed : done).push_back(flow.end);
    }
    void load_round_ended(const Load&, const RoundTimes&) override { ++rounds; }
  } ends;
  World world(1, star(4, kRate));
  Result<Load> load = load_of({{"pattern", "permutation"}, {"size", "1M"}, {"rounds", "2"}}, 4);
  REQUIRE(load);
  std::vector<Load> loads;
  loads.push_back(std::move(*load));
  Workload workload(world.fabric, std::move(loads), ends);
  workload.begin();
  while (world.scheduler.run_one(100 * kMicrosecond)) {
  }  // a flow takes 0.8 ms
  REQUIRE(world.outstanding.flows == 4);
  workload.remove_running();
  CHECK(world.outstanding.flows == 0);
  CHECK(ends.removed == std::vector<TimeNs>(4, world.scheduler.now()));
  CHECK(ends.rounds == 0);  // a round in which a flow failed has no time
  while (!workload.over()) REQUIRE(world.scheduler.run_one(kSecond));
  CHECK(ends.done.size() == 4);
  CHECK(ends.rounds == 1);
}

TEST_CASE("load: a round in which one flow failed has no time, and the next one has") {
  struct Ends final : WorkloadListener {
    size_t failed = 0;
    std::vector<uint64_t> rounds;
    void load_flow_ended(const LoadFlow& flow) override { failed += !flow.result; }
    void load_round_ended(const Load&, const RoundTimes& round) override {
      rounds.push_back(round.round);
    }
  } ends;
  World world(1, star(3, kRate));
  Result<Load> load = load_of({{"pattern", "ring-allreduce"}, {"size", "3K"}, {"rounds", "2"}}, 3);
  REQUIRE(load);
  std::vector<Load> loads;
  loads.push_back(std::move(*load));
  Workload workload(world.fabric, std::move(loads), ends);
  // The device of h2 leaves while the first flows are under way, and comes back.
  workload.begin();
  while (world.scheduler.run_one(kMicrosecond)) {
  }
  Device& device = *world.fabric.device("h2");
  device.leave();
  device.arrive();
  while (!workload.over()) REQUIRE(world.scheduler.run_one(kSecond));
  CHECK(ends.failed > 0);
  CHECK(ends.rounds == std::vector<uint64_t>{1});
}
