// Shares: flows, queue pairs, memory and connections of each address at a mount.
#include <sys/resource.h>

#include <csignal>

#include "test/rdma/traffic/flow_mount.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

std::string offer(const std::string& name, std::vector<std::pair<std::string, std::string>> with) {
  std::string line = kOffer;
  with.emplace_back("name", name);
  for (const auto& [key, value] : with) {
    size_t at = line.find(" " + key + "=") + 1;
    line.replace(at, std::min(line.find(' ', at), line.size()) - at, key + "=" + value);
  }
  return line + "\n";
}

std::string pairs(size_t count) {
  std::string text = "300:1";
  for (size_t i = 1; i < count; ++i) text += fmt::format(",{}:1", 300 + i);
  return text;
}

// Several strangers with one address.
class Gang {
 public:
  Gang(Mount& mount, unsigned number) : mount_(mount), from_(loopback_address(number)) {}
  // The mount's answer to a new stranger's line; the stranger stays connected.
  std::string say(const std::string& line) {
    strangers_.push_back(std::make_unique<Stranger>(mount_.address, from_));
    strangers_.back()->say(line);
    return strangers_.back()->hear_line();
  }
  void join() { strangers_.push_back(std::make_unique<Stranger>(mount_.address, from_)); }
  void first_leaves() { strangers_.erase(strangers_.begin()); }
  Stranger& first() { return *strangers_.front(); }
  const std::string& from() const { return from_; }

 private:
  Mount& mount_;
  std::string from_;
  std::vector<std::unique_ptr<Stranger>> strangers_;
};

}  // namespace

TEST_CASE("flow shares: the flows of an address are limited, and ended ones make room") {
  Mount far(20);
  Gang one(far, 21), other(far, 22);
  for (size_t i = 0; i < FlowShares::kOfAddress.flows; ++i) {
    REQUIRE(one.say(offer(fmt::format("a{}", i), {})).starts_with("ready "));
  }
  CHECK(one.say(offer("more", {})) == "fail " + one.from() + " may have 16 flows here");
  CHECK(other.say(offer("b", {})).starts_with("ready "));
  one.first_leaves();
  CHECK(far.outcome("a0").starts_with("failed: "));
  CHECK(one.say(offer("more", {})).starts_with("ready "));
  CHECK(far.show("a0/state").empty());
  // Four addresses have the share of all.
  std::vector<std::unique_ptr<Gang>> gangs;
  for (unsigned number : {23, 24, 25}) {
    gangs.push_back(std::make_unique<Gang>(far, number));
    size_t most = FlowShares::kOfAddress.flows - (number == 25 ? 1 : 0);  // `other` has one
    for (size_t i = 0; i < most; ++i) {
      REQUIRE(gangs.back()->say(offer(fmt::format("g{}-{}", number, i), {})).starts_with("ready "));
    }
  }
  CHECK(other.say(offer("last", {})) == "fail all others may have 64 flows here");
}

TEST_CASE("flow shares: the queue pairs and the memory of an address are limited") {
  Mount far(26);
  Gang one(far, 27), other(far, 28);
  REQUIRE(one.say(offer("a", {{"qps", pairs(1000)}})).starts_with("ready "));
  CHECK(one.say(offer("b", {{"qps", pairs(25)}})) ==
        "fail " + one.from() + " may have 1024 queue pairs in flows here, and has 1000");
  CHECK(one.say(offer("b", {{"qps", pairs(24)}})).starts_with("ready "));
  // A READ of made-up messages takes no memory.
  auto large = [](const std::string& op) {
    return offer("c" + op,
                 {{"op", op}, {"size", "16777216"}, {"count", "100"}, {"qps", pairs(16)}});
  };
  CHECK(other.say(large("write")).starts_with("ready "));
  CHECK(other.say(large("read")).starts_with("ready "));
  CHECK(other.say(offer("d", {})) ==
        "fail " + other.from() + " may have 256 MiB for flows here, and has 256");
  other.first_leaves();
  CHECK(far.outcome("cwrite").starts_with("failed: "));
  CHECK(other.say(offer("d", {})).starts_with("ready "));
}

TEST_CASE("flow shares: an awaited flow counts, and no stranger's flow keeps it out") {
  Mount far(29);
  Gang one(far, 30);
  REQUIRE(far.start("w accept mb_0 from=" + one.from()) == 0);
  REQUIRE(one.say(offer("w", {{"qps", pairs(1024)}})).starts_with("ready "));
  CHECK(one.say(offer("a", {})) ==
        "fail " + one.from() + " may have 1024 queue pairs in flows here, and has 1024");
  REQUIRE(far.start("v accept mb_0 from=" + one.from()) == 0);
  REQUIRE(one.say(offer("v", {{"qps", pairs(3072)}})).starts_with("ready "));
  REQUIRE(far.start("u accept mb_0") == 0);
  CHECK(one.say(offer("u", {})) ==
        "fail who is waited for may have 4096 queue pairs in flows here, and has 4096");
  CHECK(far.show("u/state") == "waiting");
}

TEST_CASE("flow shares: a flood of connections ends only those of its own address") {
  Mount far(31);
  Gang crowd(far, 32), early(far, 33), flood(far, 34);
  for (int i = 0; i < 20; ++i) crowd.join();
  REQUIRE(early.say(offer("e", {})).starts_with("ready "));
  early.join();
  for (size_t i = 0; i < 3 * FlowRendezvous::kMaxLines; ++i) flood.join();
  CHECK(flood.first().hear().empty());
  crowd.first().say(offer("f", {}));
  CHECK(crowd.first().hear_line().starts_with("ready "));
  CHECK(far.show("e/state") == "running");
}

TEST_CASE("rendezvous: the peer learns why an output cannot be written, but not its path") {
  std::string out = "/tmp/rocefs-exchange-XXXXXX", in = out;
  Fd made(::mkstemp(out.data())), source(::mkstemp(in.data()));
  REQUIRE(made);
  REQUIRE(source);
  REQUIRE(::ftruncate(source.get(), 12 << 20) == 0);
  auto ignored = ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit small{10 << 20, before.rlim_max};  // more than a file's 8 MiB of shared memory
  ::setrlimit(RLIMIT_FSIZE, &small);
  Mount near(35), far(36);  // processes that open their files inherit the limit
  int accepted = far.start("f accept mb_0 out=" + out);
  int started = near.start(fmt::format("f write mb_0 {} file={}", far.address, in));
  std::string there = far.outcome("f"), here = near.outcome("f");
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, ignored);
  ::unlink(out.c_str());
  ::unlink(in.c_str());
  REQUIRE(accepted == 0);
  REQUIRE(started == 0);
  CHECK(there == "failed: " + out + ": File too large");
  CHECK(here == "failed: " + far.address + ": File too large");
}
