// PccDevice through its files: orders, refusals, the end of a run.
#include "pcc/card/pcc_device.h"

#include "test/pcc/cards.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

using Names = std::vector<std::string>;

void start(Cards& cards, const std::string& algorithm = "aimd") {
  REQUIRE(cards.store("algo", algorithm) == "ok");
  REQUIRE(cards.store("state", "start") == "ok");
}

}  // namespace

TEST_CASE("pcc: an algorithm is applied, started and stopped, and CFR is off during the run") {
  Cards cards;
  CHECK(cards.read("algos") == "aimd dcqcn");
  CHECK(cards.read("algo") == "none");
  CHECK(cards.read("state") == "inactive");
  CHECK(cards.store("state", "start") == "EINVAL");
  CHECK(cards.why == "no algorithm is applied");
  CHECK(cards.store("algo", "bbr") == "EINVAL");
  CHECK(cards.read("algo") == "none");
  CHECK(cards.card().orders.empty());

  REQUIRE(cards.store("class/infiniband/mb_0/cfr/enable", "1") == "ok");
  CHECK(cards.store("algo", "dcqcn") == "ok");
  CHECK(cards.read("algo") == "dcqcn");
  CHECK(cards.cfr_acts());
  CHECK(cards.store("num_threads", "3") == "ok");
  CHECK(cards.store("interval_us", "25") == "ok");
  CHECK(cards.store("state", "start") == "ok");
  CHECK(cards.card().orders == Names{"apply 1", "start 3 25"});
  CHECK(cards.read("state") == "active");
  CHECK(!cards.cfr_acts());
  CHECK(cards.store("class/infiniband/mb_0/cfr/enable", "0") == "EBUSY");
  CHECK(cards.store("state", "start") == "EBUSY");
  CHECK(cards.read("class/infiniband/mb_1/pcc/state") == "inactive");

  CHECK(cards.store("state", "stop") == "ok");
  CHECK(cards.last_order() == "stop");
  CHECK(cards.read("state") == "inactive");
  CHECK(cards.cfr_acts());
  CHECK(cards.store("state", "stop") == "ok");
  CHECK(cards.card().orders.size() == 3);
  CHECK(cards.read("algo") == "dcqcn");
  for (const char* word : {"", "Start", "start ", "1", "restart"}) {
    CHECK(cards.store("state", word) == "EINVAL");
  }
}

TEST_CASE("pcc: num_threads takes effect at the next start, interval_us at once") {
  Cards cards;
  CHECK(cards.read("num_threads") == "1");
  CHECK(cards.read("interval_us") == "60");
  start(cards);
  CHECK(cards.last_order() == "start 1 60");
  CHECK(cards.store("num_threads", "8") == "ok");
  CHECK(cards.last_order() == "start 1 60");
  CHECK(cards.read("status").find("Num threads: 1\n") != std::string::npos);
  CHECK(cards.read("num_threads_active") == "1");
  CHECK(cards.store("interval_us", "0x10") == "ok");
  CHECK(cards.last_order() == "interval 16");
  CHECK(cards.store("interval_us", "16") == "ok");
  CHECK(cards.card().orders.size() == 3);
  for (const char* text : {"0", "65", "x"}) CHECK(cards.store("num_threads", text) == "EINVAL");
  for (const char* text : {"0", "1000001"}) CHECK(cards.store("interval_us", text) == "EINVAL");
  CHECK(cards.store("state", "stop") == "ok");
  CHECK(cards.read("num_threads_active") == "8");
  CHECK(cards.store("num_threads", "9") == "ok");
  CHECK(cards.read("num_threads_active") == "9");
  CHECK(cards.store("num_threads", "8") == "ok");
  CHECK(cards.store("state", "start") == "ok");
  CHECK(cards.last_order() == "start 8 16");
}

TEST_CASE("pcc: orders are carried out one by one, each answered when it is done") {
  Cards cards;
  cards.card().hold = true;
  CHECK(cards.store("algo", "aimd") == "later");
  auto applied = cards.later;
  CHECK(cards.store("state", "start") == "later");
  auto started = cards.later;
  CHECK(cards.store("state", "stop") == "later");
  auto stopped = cards.later;
  CHECK(cards.card().orders == Names{"apply 0"});
  CHECK(cards.read("algo") == "none");
  cards.card().now->release();
  CHECK(*applied == "ok");
  CHECK(cards.read("algo") == "aimd");
  CHECK(cards.last_order() == "start 1 60");
  CHECK(*started == "later");
  CHECK(cards.read("state") == "inactive");
  cards.card().now->release();
  CHECK(*started == "ok");
  CHECK(cards.read("state") == "active");
  CHECK(cards.last_order() == "stop");
  CHECK(*stopped == "later");
  CHECK(cards.device().cfr().controlled());
  cards.card().now->release();
  CHECK(*stopped == "ok");
  CHECK(!cards.device().cfr().controlled());
}

TEST_CASE(
    "pcc: a failed start gives the windows back; a start is refused while another owns them") {
  struct Other final : WindowController {
    void windows_lost(Device&) override {}
  } other;
  Cards cards;
  REQUIRE(cards.store("algo", "aimd") == "ok");
  cards.card().refuse = Error{EIO, "no card"};
  CHECK(cards.store("state", "start") == "EIO");
  CHECK(cards.why == "no card");
  CHECK(!cards.device().cfr().controlled());
  REQUIRE(cards.device().registers().take(other));
  size_t orders = cards.card().orders.size();
  CHECK(cards.store("state", "start") == "EBUSY");
  CHECK(cards.card().orders.size() == orders);
  CHECK(cards.read("state") == "inactive");
  CHECK(cards.store("state", "stop") == "ok");
  CHECK(cards.device().cfr().controlled());
  cards.device().registers().give_back(other);
  CHECK(cards.store("state", "start") == "ok");
}

TEST_CASE("pcc: a run that ends by itself gives the windows back and reports the reason") {
  Cards cards;
  cards.card().plugins = {{"mine.so", "mine", ""}};
  REQUIRE(cards.store("class/infiniband/mb_0/cfr/enable", "1") == "ok");
  REQUIRE(cards.store("plugin_dir", "/somewhere") == "ok");
  REQUIRE(cards.store("load", "1") == "ok");
  start(cards, "mine");
  REQUIRE(cards.entries("params") == Names{"gain"});
  cards.log.clear();
  cards.card().now->listener.pcc_died("mango-pccd died of SIGFPE", true);
  CHECK(cards.read("state") == "inactive");
  CHECK(cards.cfr_acts());
  CHECK(cards.read("algos") == "aimd dcqcn");
  CHECK(cards.read("algo") == "none");
  CHECK(cards.entries("params").empty());
  CHECK(cards.read("status").ends_with("Last error: mango-pccd died of SIGFPE"));
  CHECK(cards.log == Names{"mb_0: PCC ended: mango-pccd died of SIGFPE"});
  CHECK(cards.store("state", "start") == "EINVAL");
  start(cards);
  CHECK(cards.read("status").find("Last error") == std::string::npos);
  CHECK(!cards.cfr_acts());
}

TEST_CASE("pcc: a death that names nobody is that of the algorithm that was applied") {
  Cards cards;
  start(cards);
  cards.log.clear();
  cards.card().now->listener.pcc_died("mango-pccd died of SIGKILL", false);
  constexpr char kWhy[] = "mango-pccd died of SIGKILL, while aimd was applied";
  CHECK(cards.log == Names{std::string("mb_0: PCC ended: ") + kWhy});
  CHECK(cards.read("status").ends_with(std::string("Last error: ") + kWhy));
  cards.log.clear();
  cards.card().now->listener.pcc_died("mango-pccd died of SIGKILL", false);
  CHECK(cards.log == Names{"mb_0: PCC failed: mango-pccd died of SIGKILL"});
}

TEST_CASE("pcc: a stop that fails because the process has died is no stop in the log") {
  Cards cards;
  start(cards);
  cards.log.clear();
  cards.card().refuse = Error{ETIMEDOUT, "mango-pccd did not answer"};
  CHECK(cards.store("state", "stop") == "ETIMEDOUT");
  CHECK(cards.log.empty());
  CHECK(cards.read("state") == "inactive");
}

TEST_CASE("pcc: lines of an algorithm take a share of dmesg, long ones too") {
  Cards cards;
  start(cards);
  cards.log.clear();
  const std::string line(1024, 'x');
  for (int i = 0; i < 40; ++i) cards.card().now->listener.pcc_log(LogLevel::kInfo, line);
  const size_t said = cards.log.size();
  CHECK(said >= LogBudget::kOctetsPerSecond / line.size());
  CHECK(said <= 2 * LogBudget::kOctetsPerSecond / line.size() + 1);  // a second may begin meanwhile
  CHECK(cards.log[0] == "mb_0: PCC: " + line);
  CHECK(cards.store("state", "stop") == "ok");
  CHECK_THAT(cards.log[said],
             Catch::Matches("mb_0: PCC: [0-9]+ lines left out: more than 16 KiB in a second"));
  CHECK(cards.log[said + 1] == "mb_0: PCC stopped");
  // Another card has its own.
  cards.card("mb_1").now->listener.pcc_log(LogLevel::kInfo, line);
  CHECK(cards.log.back() == "mb_1: PCC: " + line);
}

TEST_CASE("pcc: an order that is never answered fails, and the next one proceeds") {
  Cards cards;
  cards.card().hold = true;
  CHECK(cards.store("algo", "aimd") == "later");
  auto applied = cards.later;
  CHECK(cards.store("algo", "dcqcn") == "later");
  auto next = cards.later;
  cards.card().now->drop();
  CHECK(*applied == "EIO");
  CHECK(*next == "later");
  CHECK(cards.last_order() == "apply 1");
  cards.card().now->release();
  CHECK(*next == "ok");
}

TEST_CASE("pcc: plugins load in order despite refused ones, and only idle ones are unloaded") {
  Cards cards;
  CHECK(cards.store("load", "1") == "ENOENT");
  REQUIRE(cards.store("plugin_dir", "/plugins") == "ok");
  CHECK(cards.read("load").empty());
  cards.card().plugins = {{"b.so", "my_b", ""}, {"bad.so", "", "no symbol"}, {"a.so", "my_a", ""}};
  CHECK(cards.store("load", "1") == "ENOEXEC");
  CHECK(cards.why == "bad.so: no symbol");
  CHECK(cards.last_order() == "load /plugins");
  CHECK(cards.read("load") == "b.so: loaded my_b\nbad.so: refused: no symbol\na.so: loaded my_a");
  CHECK(cards.read("algos") == "aimd dcqcn my_b my_a");
  CHECK(cards.store("load", "1") == "ok");
  CHECK(cards.read("load").empty());
  CHECK(cards.store("unload", "aimd") == "EPERM");
  CHECK(cards.store("unload", "nobody") == "EINVAL");
  REQUIRE(cards.store("algo", "my_b") == "ok");
  CHECK(cards.store("unload", "my_b") == "EBUSY");
  CHECK(cards.store("unload", "my_a") == "ok");
  CHECK(cards.last_order() == "unload 3");
  CHECK(cards.read("algos") == "aimd dcqcn my_b");
  CHECK(cards.read("algo") == "my_b");
}

TEST_CASE("pcc: params/ has the parameters of the applied algorithm, in order of registration") {
  Cards cards;
  CHECK(cards.entries("params").empty());
  REQUIRE(cards.store("algo", "dcqcn") == "ok");
  CHECK(cards.entries("params") == Names{"wai", "g", "max_window"});
  CHECK(cards.read("params/wai") == "80");
  CHECK(cards.store("params/wai", "0x50") == "ok");
  CHECK(cards.last_order() == "update 1 wai=0x50");
  auto wai = cards.file("params/wai");
  REQUIRE(cards.store("algo", "aimd") == "ok");
  CHECK(cards.entries("params") == Names{"alpha", "beta"});
  CHECK(wai->removed());
  cards.card().refuse = Error{ERANGE, "too large"};
  CHECK(cards.store("params/beta", "1e999") == "ERANGE");
  CHECK(cards.read("params/beta") == "0.5");
}

TEST_CASE("pcc: an update is all or nothing, and only for the applied algorithm") {
  Cards cards;
  REQUIRE(cards.store("algo", "dcqcn") == "ok");
  size_t orders = cards.card().orders.size();
  const std::pair<const char*, const char*> refused[] = {
      {"", "EINVAL"},           {"dcqcn", "EINVAL"},        {"dcqcn wai", "EINVAL"},
      {"dcqcn =1", "EINVAL"},   {"dcqcn wai=", "EINVAL"},   {"dcqcn wai=1 wai=2", "EINVAL"},
      {"bbr gain=1", "EINVAL"}, {"aimd alpha=1", "EINVAL"}, {"dcqcn wai=1 alpha=2", "EINVAL"}};
  for (auto [text, code] : refused) {
    INFO(text);
    CHECK(cards.store("update", text) == code);
  }
  CHECK(cards.card().orders.size() == orders);
  CHECK(cards.store("update", "dcqcn wai=81  g=0.5") == "ok");
  CHECK(cards.last_order() == "update 1 wai=81 g=0.5");
  CHECK(cards.read("params/wai") == "81");
  CHECK(cards.read("params/g") == "0.5");
  cards.card().refuse = Error{EINVAL, "g: 'x' is no number"};
  CHECK(cards.store("update", "dcqcn wai=1 g=x") == "EINVAL");
  CHECK(cards.why == "g: 'x' is no number");
  CHECK(cards.read("params/wai") == "81");
}

TEST_CASE("pcc: orders fail when the driver leaves, and everything starts afresh when it returns") {
  Cards cards;
  REQUIRE(cards.store("class/infiniband/mb_0/cfr/enable", "1") == "ok");
  REQUIRE(cards.store("interval_us", "5") == "ok");
  start(cards);
  cards.card().hold = true;
  CHECK(cards.store("algo", "dcqcn") == "later");
  auto under_way = cards.later;
  CHECK(cards.store("state", "stop") == "later");
  auto waiting = cards.later;
  cards.bind(false);
  CHECK(*under_way == "ENODEV");
  CHECK(*waiting == "ENODEV");
  CHECK(cards.last_order() == "forget");
  CHECK(!cards.file("state"));
  CHECK(!cards.device().cfr().controlled());
  cards.card().hold = false;
  cards.bind(true);
  CHECK(cards.read("state") == "inactive");
  CHECK(cards.read("algo") == "none");
  CHECK(cards.read("interval_us") == "60");
  start(cards, "dcqcn");
  CHECK(cards.last_order() == "start 1 60");
}

TEST_CASE("pcc: a start under way when the driver leaves owns no windows afterwards") {
  Cards cards;
  REQUIRE(cards.store("algo", "aimd") == "ok");
  cards.card().hold = true;
  CHECK(cards.store("state", "start") == "later");
  auto started = cards.later;
  CHECK(cards.device().cfr().controlled());
  cards.bind(false);
  CHECK(*started == "ENODEV");
  CHECK(!cards.device().cfr().controlled());
  cards.bind(true);
  CHECK(cards.read("state") == "inactive");
  CHECK(!cards.device().cfr().controlled());
}

TEST_CASE("pcc: a reset ends the run, and forgets what was applied and loaded") {
  Cards cards;
  REQUIRE(cards.store("plugin_dir", "/plugins") == "ok");
  cards.card().plugins = {{"mine.so", "mine", ""}};
  REQUIRE(cards.store("load", "1") == "ok");
  start(cards, "mine");
  std::string said = "later";
  cards.pcc->reset([&](Result<void> result) { said = result ? "ok" : result.error().reason; });
  cards.pcc->finish_reset();
  CHECK(said == "ok");
  CHECK(cards.read("state") == "inactive");
  CHECK(cards.read("algos") == "aimd dcqcn");
  CHECK(cards.read("algo") == "none");
  CHECK(cards.entries("params").empty());
  CHECK(!cards.device().cfr().controlled());
  start(cards);
}
