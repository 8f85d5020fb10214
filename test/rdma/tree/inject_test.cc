// Scripted faults: each acts on the packets that it names, and counts them.
#include "rdma/tree/inject.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <set>

#include "rdma/packet/traffic_class.h"
#include "test/rdma/transport/pair.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr const char* kForth = "mb_0-sw_0";
constexpr const char* kArrival = "sw_0-mb_1";

InjectSpec spec_of(const std::string& text) {
  Result<InjectSpec> spec = parse_inject("f " + text);
  if (!spec) FAIL(text << ": " << spec.error().reason);
  return *spec;
}

// A fault on one link of a pair; `text` follows the name.
struct Fault {
  Link& link;
  Injector injector;
  FaultPtr fault;
  Fault(Pair& pair, const std::string& text)
      : link(pair.world.link(spec_of(text).link)),
        injector(link),
        fault(std::make_shared<InjectedFault>(spec_of(text), pair.world.fabric.seed(), nullptr)) {
    injector.arm(fault);
  }
  uint64_t fired() const { return fault->fired.get(); }
};

// Every PSN that comes out of a link, in order.
struct Seen {
  std::vector<uint32_t> psns;
  Watch watch;
  Seen(Pair& pair, const char* link)
      : watch(pair, link, [this](const wire::Parsed& parsed, Packet&) {
          psns.push_back(parsed.headers.bth.psn);
          return false;
        }) {}
};

constexpr uint32_t kPackets = 10;
constexpr uint32_t kLength = kPackets * 256;

}  // namespace

TEST_CASE("inject: a message arrives whole, whichever of its packets is lost") {
  for (uint32_t psn = 0; psn < kPackets; ++psn) {
    INFO("PSN " << psn);
    Pair pair;
    Fault fault(pair, fmt::format("drop {} psn={}", kForth, psn));
    CHECK(pair.outcome(pair.link.write(1, 0, kLength)) == WcStatus::kSuccess);
    CHECK(fault.fired() == 1);
    CHECK(pair.same(0, 0, kLength));
    // The loss of the last one causes no NAK but a time-out, and nothing was acknowledged before.
    uint64_t resent = psn == kPackets - 1 ? kPackets : kPackets - psn;
    CHECK(pair.link.near->requester().packets_resent() == resent);
  }
}

TEST_CASE("inject: a duplicated packet is counted and not executed again") {
  for (const char* more : {"", " delay=3us"}) {
    Pair pair;
    Fault fault(pair, fmt::format("duplicate {} psn=4{}", kArrival, more));
    CHECK(pair.outcome(pair.link.write(1, 0, kLength)) == WcStatus::kSuccess);
    CHECK(fault.fired() == 1);
    CHECK(pair.far().duplicate_request.get() == 1);
    CHECK(pair.far().rx_icrc_encapsulated.get() == 0);
    CHECK(pair.same(0, 0, kLength));
    CHECK(pair.world.outstanding.packets == 0);
  }
}

TEST_CASE(
    "inject: a reordered packet arrives behind the given number of its queue pair's packets") {
  Pair pair;
  Seen seen(pair, kArrival);
  Fault fault(pair, fmt::format("reorder {} psn=2 by=3", kArrival));
  CHECK(pair.outcome(pair.link.write(1, 0, kLength)) == WcStatus::kSuccess);
  CHECK(fault.fired() == 1);
  REQUIRE(seen.psns.size() >= 6);
  CHECK(std::vector(seen.psns.begin(), seen.psns.begin() + 6) ==
        std::vector<uint32_t>{0, 1, 3, 4, 5, 2});
  CHECK(pair.far().out_of_sequence.get() > 0);
  CHECK(pair.same(0, 0, kLength));
}

TEST_CASE("inject: packets of another queue pair do not count for a reordered packet") {
  Pair pair;
  Connection other(pair.world, kPairArea, quick_attributes());
  uint32_t qpn = pair.link.far->number();
  std::vector<uint32_t> psns;
  uint64_t others = 0;
  Watch watch(pair, kArrival, [&](const wire::Parsed& parsed, Packet&) {
    if (parsed.headers.bth.dest_qpn == qpn && psns.size() < 6) {
      psns.push_back(parsed.headers.bth.psn);
    } else {
      ++others;
    }
    return false;
  });
  Fault fault(pair, fmt::format("reorder {} qpn={} psn=2 by=3", kArrival, qpn));
  pair.link.post(pair.link.write(1, 0, kLength));
  other.post(other.write(1, 0, kLength));
  pair.run();
  CHECK(psns == std::vector<uint32_t>{0, 1, 3, 4, 5, 2});
  CHECK(others > 0);
}

TEST_CASE("inject: a reordered packet that nothing follows arrives after its delay") {
  Pair pair;
  Fault fault(pair, fmt::format("reorder {} psn=9 delay=20us", kArrival));
  CHECK(pair.outcome(pair.link.write(1, 0, kLength)) == WcStatus::kSuccess);
  CHECK(fault.fired() == 1);
  CHECK(pair.link.near->requester().packets_resent() == 0);
  CHECK(pair.same(0, 0, kLength));
}

TEST_CASE("inject: a flipped bit in payload, ICRC or header is detected by the ICRC") {
  for (const char* part : {"payload", "icrc", "header"}) {
    for (uint64_t seed : {1, 2, 3, 4, 5}) {
      INFO(part << ", seed " << seed);
      Pair pair;
      Fault fault(pair, fmt::format("corrupt {} psn=4 what={}", kForth, part));
      CHECK(pair.outcome(pair.link.write(1, 0, kLength)) == WcStatus::kSuccess);
      CHECK(fault.fired() == 1);
      CHECK(pair.far().rx_icrc_encapsulated.get() == 1);
      CHECK(pair.link.near->requester().packets_resent() > 0);
      CHECK(pair.same(0, 0, kLength));
    }
  }
}

TEST_CASE("inject: a flipped bit that the ICRC does not cover changes nothing") {
  Pair pair;
  Fault fault(pair, fmt::format("corrupt {} what=reserved count=0", kForth));
  CHECK(pair.outcome(pair.link.write(1, 0, kLength)) == WcStatus::kSuccess);
  CHECK(fault.fired() == kPackets);
  CHECK(pair.far().rx_icrc_encapsulated.get() == 0);
  CHECK(pair.link.near->requester().packets_resent() == 0);
  CHECK(pair.same(0, 0, kLength));
}

TEST_CASE("inject: a delayed packet arrives later by the given time") {
  TimeNs took[2];
  for (bool delayed : {false, true}) {
    Pair pair;
    std::optional<Fault> fault;
    if (delayed) fault.emplace(pair, fmt::format("delay {} delay=7.5us", kArrival));
    CHECK(pair.outcome(pair.link.write(1, 0, 100)) == WcStatus::kSuccess);
    if (fault) CHECK(fault->fired() == 1);
    took[delayed] = pair.world.scheduler.now();
  }
  CHECK(took[1] - took[0] == 7500);
}

TEST_CASE("inject: only ECN-capable packets are marked") {
  for (bool capable : {false, true}) {
    Pair pair;
    uint64_t congested = 0;
    Watch arrival(pair, kArrival, [&](const wire::Parsed&, Packet& packet) {
      congested += ecn_of(packet) == Ecn::kCongested;
      return false;
    });
    Watch departure(pair, kForth, [&](const wire::Parsed&, Packet& packet) {
      if (capable) packet.header[1] |= 2;
      return false;
    });
    Fault fault(pair, fmt::format("mark-ce {} count=4", kArrival));
    CHECK(pair.outcome(pair.link.write(1, 0, kLength)) == WcStatus::kSuccess);
    CHECK(fault.fired() == (capable ? 4 : 0));
    CHECK(congested == fault.fired());
    CHECK(pair.same(0, 0, kLength));
  }
}

TEST_CASE("inject: opcode=, skip= and count= select packets") {
  Pair pair;
  Seen seen(pair, kArrival);
  Fault fault(pair, fmt::format("duplicate {} opcode=RC_WRITE_MIDDLE skip=2 count=3", kArrival));
  CHECK(pair.outcome(pair.link.write(1, 0, kLength)) == WcStatus::kSuccess);
  CHECK(fault.fired() == 3);
  std::multiset<uint32_t> psns(seen.psns.begin(), seen.psns.end());
  for (uint32_t psn = 0; psn < kPackets; ++psn) {
    INFO("PSN " << psn);
    CHECK(psns.count(psn) == (psn >= 3 && psn <= 5 ? 2 : 1));
  }
}

TEST_CASE("inject: opcode=nak and opcode=rnr tell acknowledgements apart") {
  // The first answer to a lost packet is the NAK; without it the timeout begins anew.
  Pair pair;
  Fault loss(pair, fmt::format("drop {} psn=3", kForth));
  Fault nak(pair, "drop sw_0-mb_0 opcode=nak");
  Fault rnr(pair, "drop mb_1-sw_0 opcode=rnr");
  CHECK(pair.outcome(pair.link.write(1, 0, kLength)) == WcStatus::kSuccess);
  CHECK(loss.fired() == 1);
  CHECK(nak.fired() == 1);
  CHECK(rnr.fired() == 0);
  CHECK(pair.near().packet_seq_err.get() == 0);
  CHECK(pair.near().local_ack_timeout_err.get() == 1);
}

TEST_CASE("inject: a fault of one queue pair does not affect another") {
  Pair pair;
  Connection other(pair.world, kPairArea, quick_attributes());
  Fault fault(pair, fmt::format("drop {} qpn={} count=0", kForth, other.far->number()));
  CHECK(pair.outcome(pair.link.write(1, 0, kLength)) == WcStatus::kSuccess);
  CHECK(fault.fired() == 0);
  other.post(other.write(1, 0, kLength));
  pair.run();
  auto ended = Connection::poll(other.near_cq);
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].status == WcStatus::kRetryExceeded);
  CHECK(fault.fired() > 0);
}

TEST_CASE("inject: a fault with a probability fires that often, and alike for the same seed") {
  constexpr int kMessages = 40;
  auto fired = [](uint64_t seed) {
    Pair pair;
    InjectSpec spec = spec_of(fmt::format("corrupt {} what=reserved p=0.1", kForth));
    Injector injector(pair.world.link(kForth));
    auto fault = std::make_shared<InjectedFault>(spec, seed, nullptr);
    injector.arm(fault);
    for (int i = 0; i < kMessages; ++i) {
      CHECK(pair.outcome(pair.link.write(1, 0, kPairArea)) == WcStatus::kSuccess);
    }
    return fault->fired.get();
  };
  // 10240 packets at 0.1: 1024 with a standard deviation of 30; four of them either way.
  uint64_t first = fired(1), second = fired(2);
  CHECK(first == Approx(1024).margin(121));
  CHECK(second == Approx(1024).margin(121));
  CHECK(first == fired(1));
  CHECK(first != second);
}

TEST_CASE("inject: packets bypass a fault that is spent") {
  Pair pair;
  LinkSink* far = &pair.world.link(kForth).sink();
  Fault fault(pair, fmt::format("delay {} psn=2 delay=5us", kForth));
  CHECK(&pair.world.link(kForth).sink() == &fault.injector);
  CHECK(pair.outcome(pair.link.write(1, 0, kLength)) == WcStatus::kSuccess);
  CHECK(&pair.world.link(kForth).sink() == far);
}

TEST_CASE("inject: clearing releases held packets, and the flow recovers") {
  Pair pair;
  Fault fault(pair, fmt::format("delay {} psn=2 delay=1s", kForth));
  pair.link.post(pair.link.write(1, 0, kLength));
  while (fault.fired() == 0) REQUIRE(pair.world.scheduler.run_one(kSecond));
  fault.injector.clear();
  pair.run();
  CHECK(pair.sent().size() == 1);
  CHECK(pair.same(0, 0, kLength));
  CHECK(pair.world.scheduler.now() < kSecond);
}

// The directory, on an engine that has not started: stores are answered at once.
namespace {

struct InjectRig {
  PollLoop loop;
  std::unique_ptr<Engine> engine =
      std::move(*Engine::create({ClockMode::kVirtual, 1, 0, nullptr}, loop));
  Fabric fabric{default_topology(), 1, engine->scheduler(), engine->outstanding()};
  Tree tree{0, 0};
  LinkKnobs knobs{fabric, *engine};
  Inject inject{tree, "inject", *engine, fabric, knobs};

  Result<void> store(const std::string& path, const std::string& text) {
    Result<void> result = Error{EIO, "no answer"};
    Tree::Node* node = tree.resolve(path);
    if (!node) return errorf(ENOENT, "no {}", path);
    node->file->store(text, std::make_shared<Operation>(Caller{}),
                      [&](Result<void> answer) { result = std::move(answer); });
    return result;
  }
  std::string text(const std::string& path) {
    Tree::Node* node = tree.resolve(path);
    if (!node) return "no " + path;
    if (auto* attribute = dynamic_cast<Attribute*>(node->file.get())) return *attribute->show();
    std::string text = "no answer";
    dynamic_cast<Stream&>(*node->file).content([&](Result<std::string> content) {
      text = std::move(*content);
    });
    return text;
  }
  // Runs what the core has posted to the control thread.
  void settle() {
    loop.stop();
    loop.run();
  }
};

}  // namespace

TEST_CASE("inject/: a fault has a directory from add to remove") {
  InjectRig rig;
  REQUIRE(rig.store("inject/add", "lost drop mb_0-sw_0 psn=7\n"));
  CHECK(rig.text("inject/lost/fired") == "0\n");
  CHECK(rig.text("inject/lost/spec") == "drop mb_0-sw_0 psn=7\n");
  CHECK(rig.text("inject/list") == "lost fired 0: drop mb_0-sw_0 psn=7\n");
  CHECK(rig.store("inject/add", "lost up mb_0-sw_0").error().code == EEXIST);
  CHECK(rig.store("inject/add", "f drop mb_0-mb_1").error().code == EINVAL);
  CHECK(rig.store("inject/lost/remove", "2").error().code == EINVAL);
  REQUIRE(rig.store("inject/lost/remove", "1\n"));
  CHECK_FALSE(rig.tree.resolve("inject/lost"));
  CHECK(rig.text("inject/list") == "");
}

TEST_CASE("inject/: a direction goes down and up, and its knob follows") {
  InjectRig rig;
  Link& link = *rig.fabric.link("mb_0-sw_0");
  const PortCounters& port = rig.fabric.port("mb_0")->counters();
  auto knob = [&] {
    return std::get<uint64_t>(rig.knobs.at(link)->value(knob_index(kLinkKnobs, "state"))) == 1;
  };
  REQUIRE(rig.store("inject/add", "d down mb_0-sw_0"));
  rig.settle();
  CHECK_FALSE(link.parameters().up);
  CHECK_FALSE(knob());
  CHECK(rig.text("inject/d/fired") == "1\n");
  REQUIRE(rig.store("inject/add", "u up mb_0-sw_0"));
  rig.settle();
  CHECK(link.parameters().up);
  CHECK(knob());
  REQUIRE(rig.store("inject/add", "flap down mb_0-sw_0 delay=3ms"));
  CHECK_FALSE(link.parameters().up);
  rig.engine->scheduler().run_until(3 * kMillisecond);
  rig.settle();
  CHECK(link.parameters().up);
  CHECK(knob());
  CHECK(port.link_downed.get() == 2);
}

TEST_CASE("inject/: a direction that goes down at a packet loses it, and the flow recovers") {
  InjectRig rig;
  REQUIRE(rig.store("inject/add", "flap down mb_0-sw_0 opcode=data skip=20 delay=200us"));
  FlowSpec spec = *parse_flow("f write mb_0 mb_1 size=64K count=10 timeout=5");
  auto stats = std::make_shared<FlowStats>();
  bool ended = false;
  Flow flow(rig.fabric, spec, {}, stats, nullptr, [&](Result<void> result) {
    CHECK(result);
    ended = true;
  });
  REQUIRE(flow.start());
  rig.engine->scheduler().run_until(100 * kMillisecond);
  CHECK(ended);
  CHECK(stats->mismatched.get() == 0);
  CHECK(stats->retransmitted.get() > 0);
  CHECK(rig.text("inject/flap/fired") == "1\n");
  CHECK(rig.fabric.port("mb_0")->counters().link_downed.get() == 1);
}

TEST_CASE("inject/: a reset removes all faults, and nothing is held") {
  InjectRig rig;
  REQUIRE(rig.store("inject/add", "a drop mb_0-sw_0 count=0"));
  REQUIRE(rig.store("inject/add", "b down mb_1-sw_0 delay=1ms"));
  std::shared_ptr<File> open = rig.tree.resolve("inject/b/fired")->file;  // a reader
  rig.inject.clear_all();
  rig.inject.finish_reset();
  CHECK(rig.text("inject/list") == "");
  CHECK_FALSE(rig.tree.resolve("inject/a"));
  rig.engine->scheduler().run_until(2 * kMillisecond);
  CHECK_FALSE(rig.fabric.link("mb_1-sw_0")->parameters().up);  // the knob's, not the fault's
  REQUIRE(rig.store("inject/add", "a up mb_0-sw_0"));
}

TEST_CASE("inject: an invalid fault is refused with the reason") {
  const struct {
    const char* text;
    const char* reason;
  } kBad[] = {
      {"", "NAME ACTION LINK"},
      {"f drop", "NAME ACTION LINK"},
      {"a/b drop l", "cannot be a fault's name"},
      {"add drop l", "cannot be a fault's name"},
      {"list drop l", "cannot be a fault's name"},
      {"f lose l", "unknown action lose"},
      {"f drop l psn", "psn is not KEY=VALUE"},
      {"f drop l psn=1 psn=2", "psn is given twice"},
      {"f drop l psn=0x1000000", "psn=16777216 is outside 0 to 16777215"},
      {"f drop l qpn=x", "qpn: "},
      {"f drop l sport=65536", "sport=65536"},
      {"f drop l dscp=64", "dscp=64"},
      {"f drop l prio=8", "prio=8"},
      {"f drop l opcode=RC_FLY", "opcode=RC_FLY"},
      {"f drop l opcode=", "opcode="},
      {"f drop l p=0", "p=0 would never fire"},
      {"f drop l p=2", "p: "},
      {"f drop l speed=1", "unknown key speed"},
      {"f drop l delay=1us", "delay= goes with"},
      {"f delay l", "delay wants delay=TIME"},
      {"f delay l delay=11s", "outside 1ns to 10s"},
      {"f delay l delay=0", "outside 1ns to 10s"},
      {"f drop l by=2", "by= goes with reorder"},
      {"f reorder l by=0", "by=0 is outside 1 to 65536"},
      {"f reorder l by=65537", "by=65537 is outside 1 to 65536"},
      {"f drop l what=icrc", "what= goes with corrupt"},
      {"f corrupt l what=all", "what=all"},
      {"f up l psn=2", "up happens at once"},
      {"f down l count=2", "count= goes with"},
  };
  for (const auto& bad : kBad) {
    INFO(bad.text);
    Result<InjectSpec> spec = parse_inject(bad.text);
    REQUIRE_FALSE(spec);
    CHECK((spec.error().code == EINVAL || spec.error().code == ERANGE));
    CHECK_THAT(spec.error().reason, Catch::Contains(bad.reason));
  }
}
