// Files of congestion control: rules that span knobs, and shown text.
#include "rdma/tree/congestion_files.h"

#include <catch2/catch.hpp>

#include "core/tree/knob_file.h"
#include "core/tree/knob_transaction.h"
#include "test/rdma/congested.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// The engine does not run: answers come at once.
struct Files {
  PollLoop loop;
  std::unique_ptr<Engine> engine;
  World world;
  Tree tree{0, 0};
  Files() {
    auto created = Engine::create({ClockMode::kVirtual, 1}, loop);
    REQUIRE(created);
    engine = std::move(*created);
    add_ecn_files(tree, "net", world.device("mb_0").port(), *engine);
    add_cfr_files(tree, "dev", world.device("mb_0"), *engine);
  }
  std::string cat(const std::string& path) {
    auto file = std::dynamic_pointer_cast<Attribute>(tree.resolve(path)->file);
    REQUIRE(file);
    return *file->show();
  }
  // The errno, and the reason.
  Error echo(const std::string& path, std::string_view text) {
    Error said;
    auto file = std::dynamic_pointer_cast<Attribute>(tree.resolve(path)->file);
    REQUIRE(file);
    file->store(text, std::make_shared<Operation>(Caller{}), [&](Result<void> result) {
      if (!result) said = result.error();
    });
    return said;
  }
};

struct TakesWindows final : WindowController {
  void windows_lost(Device&) override {}
};

}  // namespace

TEST_CASE("ecn files: K must be greater than N, and a refusal names both") {
  Files files;
  CHECK(files.cat("net/ecn/roce_np/min_time_between_cnps") == "50\n");
  CHECK(files.cat("net/ecn/roce_rp/dce_tcp_rtt") == "55\n");
  Error refused = files.echo("net/ecn/roce_rp/dce_tcp_rtt", "50");
  CHECK(refused.code == EINVAL);
  CHECK(refused.reason == "dce_tcp_rtt, 50 us, must be more than min_time_between_cnps, 50 us");
  CHECK(files.echo("net/ecn/roce_np/min_time_between_cnps", "55").code == EINVAL);
  CHECK(files.cat("net/ecn/roce_np/min_time_between_cnps") == "50\n");
  CHECK(files.echo("net/ecn/roce_rp/dce_tcp_rtt", "51").code == 0);
  CHECK(files.world.device("mb_0").port().ecn().rp().alpha_period == 51 * kMicrosecond);
  CHECK(files.echo("net/ecn/roce_rp/rpg_max_rate", "100").code == 0);
  refused = files.echo("net/ecn/roce_rp/rpg_min_rate", "101");
  CHECK(refused.reason == "rpg_min_rate, 101 Mbit/s, is more than rpg_max_rate, 100 Mbit/s");
}

TEST_CASE("ecn files: NP is on and RP off for every priority, and each can be set alone") {
  Files files;
  for (int i = 0; i < 8; ++i) {
    std::string np = fmt::format("net/ecn/roce_np/enable/{}", i);
    std::string rp = fmt::format("net/ecn/roce_rp/enable/{}", i);
    CHECK(files.cat(np.c_str()) == "1\n");
    CHECK(files.cat(rp.c_str()) == "0\n");
    const EcnKnobs& ecn = files.world.device("mb_0").port().ecn();
    CHECK(files.echo(np.c_str(), "off").code == 0);
    CHECK(ecn.np().priorities == (0xff & ~(1 << i)));
    CHECK(files.echo(np.c_str(), "on").code == 0);
    CHECK(files.echo(rp.c_str(), "y").code == 0);
    CHECK(ecn.rp().priorities == 1 << i);
    CHECK(files.echo(rp.c_str(), "n").code == 0);
  }
}

TEST_CASE(
    "cfr files: while the windows are owned, enable is 0 and EBUSY, and saved keeps the setting") {
  Files files;
  Cfr& cfr = files.world.device("mb_0").cfr();
  CHECK(files.cat("dev/cfr/enable") == "0\n");
  CHECK(files.cat("dev/cfr/ooo_threshold") == "1\n");
  CHECK(files.echo("dev/cfr/enable", "yes").code == 0);
  CHECK(cfr.enabled());
  TakesWindows owner;
  REQUIRE(cfr.take_windows(owner));
  CHECK(files.cat("dev/cfr/enable") == "0\n");
  CHECK(files.cat("dev/cfr/saved") == "1\n");
  CHECK(files.echo("dev/cfr/enable", "0").code == EBUSY);
  CHECK(files.echo("dev/cfr/enable", "1").code == EBUSY);
  CHECK(files.echo("dev/cfr/enable", "x").code == EINVAL);
  // A store of several knobs at once is refused, too.
  auto changes = knob_changes(files.tree, {{"dev/cfr/enable", "0"}});
  REQUIRE(changes);
  int code = 0;
  store_knobs(*files.engine, std::move(*changes), [&](Result<Moment> result) {
    if (!result) code = result.error().code;
  });
  CHECK(code == EBUSY);
  CHECK(files.echo("dev/cfr/ooo_threshold", "16").code == 0);
  CHECK(files.echo("dev/cfr/ooo_threshold", "0").code == EINVAL);
  cfr.return_windows(owner);
  CHECK(files.cat("dev/cfr/enable") == "1\n");
  CHECK(cfr.enabled());
  CHECK(cfr.ooo_threshold() == 16);
}

TEST_CASE("tc files: a traffic class is shown as in OFED, and what is shown can be stored") {
  Files files;
  const char* path = "dev/tc/1/traffic_class";
  ClassOverride& override_of = files.world.device("mb_0").port().class_override();
  AddressVector asked, elsewhere;
  asked.traffic_class = elsewhere.traffic_class = 7;
  asked.remote = mapped_ipv4({10, 77, 0, 2});
  elsewhere.remote = mapped_ipv4({10, 77, 0, 3});
  CHECK(files.cat(path).empty());
  CHECK(override_of.apply_to(asked) == 7);
  for (const char* text : {"106", "106\n", "0x6a", "tclass=106", "Global tclass=106\n"}) {
    CHECK(files.echo(path, text).code == 0);
    CHECK(files.cat(path) == "Global tclass=106\n");
    CHECK(override_of.apply_to(asked) == 106);
    CHECK(files.echo(path, "-1").code == 0);
    CHECK(files.cat(path).empty());
    CHECK(override_of.apply_to(asked) == 7);
  }
  for (const char* text :
       {"256", "-2", "x", "1 2", "tclass=", "Global", "1x", "Global Global tclass=1", "Global -1",
        "", "\n", " ", "dst_ip=10.77.0.2", "tclass=1,dst_ip=10.77.0.2,tclass=1", "tclass=1,2",
        "dst_ip=10.77.0.2,tclass=256", "dst_ip=10.77.0,tclass=1",
        "dst_ip=1.2.3.4,tclass=1 dst_ip=1.2.3.4,tclass=2"}) {
    INFO(text);
    CHECK(files.echo(path, text).code == EINVAL);
    CHECK(files.cat(path).empty());
  }
  // Settings of one destination, alone or beside the global one.
  const char* const shown =
      "Global tclass=106 dst_ip=10.77.0.2,tclass=32 dst_ip=2001:db8::1,tclass=9";
  for (const char* text : {"106 dst_ip=10.77.0.2,tclass=0x20 dst_ip=2001:db8::1,tclass=9", shown}) {
    CHECK(files.echo(path, text).code == 0);
    CHECK(files.cat(path) == shown + std::string("\n"));
    CHECK(override_of.apply_to(asked) == 32);
    CHECK(override_of.apply_to(elsewhere) == 106);
    CHECK(files.echo(path, "-1 dst_ip=10.77.0.2,tclass=32").code == 0);
    CHECK(files.cat(path) == "dst_ip=10.77.0.2,tclass=32\n");
    CHECK(override_of.apply_to(asked) == 32);
    CHECK(override_of.apply_to(elsewhere) == 7);
  }
}

TEST_CASE("tc files: rules for destinations and the class for all are kept side by side") {
  Files files;
  const std::string path = "dev/tc/1/traffic_class";
  struct Row {
    std::string stored, shown;
  };
  for (const Row& row : {
           Row{"106", "Global tclass=106"},
           Row{"dst_ip=10.77.0.2,tclass=32", "Global tclass=106 dst_ip=10.77.0.2,tclass=32"},
           Row{"dst_ip=2001:db8::1,tclass=9",
               "Global tclass=106 dst_ip=10.77.0.2,tclass=32 dst_ip=2001:db8::1,tclass=9"},
           Row{"7 dst_ip=10.77.0.2,tclass=33",
               "Global tclass=7 dst_ip=10.77.0.2,tclass=33 dst_ip=2001:db8::1,tclass=9"},
           Row{"dst_ip=2001:db8::1,tclass=-1", "Global tclass=7 dst_ip=10.77.0.2,tclass=33"},
           Row{"tclass=-1", "dst_ip=10.77.0.2,tclass=33"},
           Row{"dst_ip=10.77.0.3,tclass=-1", "dst_ip=10.77.0.2,tclass=33"},
           Row{"Global tclass=5", "Global tclass=5 dst_ip=10.77.0.2,tclass=33"},
           Row{"tclass=34,dst_ip=10.77.0.2", "Global tclass=5 dst_ip=10.77.0.2,tclass=34"},
           Row{"-1", ""},
       }) {
    INFO(row.stored);
    CHECK(files.echo(path, row.stored).code == 0);
    CHECK(files.cat(path) == row.shown + (row.shown.empty() ? "" : "\n"));
  }
  // A worker that takes over stores what was shown, over what the configuration says.
  CHECK(files.echo(path, "106 dst_ip=10.77.0.9,tclass=1").code == 0);
  auto file = find_knob(files.tree, path);
  REQUIRE(file);
  Result<void> restored = Error{EIO, "no answer"};
  file->restore("dst_ip=10.77.0.2,tclass=33\n", std::make_shared<Operation>(Caller{}),
                [&](Result<void> result) { restored = result; });
  CHECK(restored);
  CHECK(files.cat(path) == "dst_ip=10.77.0.2,tclass=33\n");
  // An empty line is refused; `set` takes what `get` says of a file without rules.
  for (const char* text : {"", "\n", " \n"}) CHECK(files.echo(path, text).code == EINVAL);
  CHECK(files.cat(path) == "dst_ip=10.77.0.2,tclass=33\n");
  auto none = knob_changes(files.tree, {{path, ""}});
  REQUIRE(none);
  store_knobs(*files.engine, std::move(*none), [](Result<Moment> result) { CHECK(result); });
  CHECK(files.cat(path).empty());
  // Sixteen rules are as many as there may be.
  for (int i = 2; i < 18; ++i) {
    CHECK(files.echo(path, fmt::format("dst_ip=10.77.0.{},tclass=1", i)).code == 0);
  }
  CHECK(files.echo(path, "dst_ip=10.77.0.18,tclass=1").code == EINVAL);
  CHECK(files.echo(path, "dst_ip=10.77.0.17,tclass=2").code == 0);
}
