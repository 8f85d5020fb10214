// Files of PCC: queue pairs, status, trace, modes, management links, rpc.
#include "pcc/card/pcc_files.h"
#include "core/tree/knob_file.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "pcc/card/trace_text.h"
#include "test/pcc/cards.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

using Names = std::vector<std::string>;

constexpr char kLink[] = "class/net/mango_mgmt0/";

void start(Cards& cards, const std::string& algorithm = "aimd") {
  REQUIRE(cards.store("algo", algorithm) == "ok");
  REQUIRE(cards.store("state", "start") == "ok");
}

std::string set(Cards& cards, const std::string& text) {
  auto assignments = parse_assignments(text);
  REQUIRE(assignments);
  auto changes = knob_changes(cards.tree, *assignments);
  if (!changes) return strerrorname_np(changes.error().code);
  std::string said;
  store_knobs(*cards.engine, std::move(*changes), [&](Result<Moment> applied) {
    said = applied ? "ok" : strerrorname_np(applied.error().code);
  });
  return said;
}

// Talk: one open file; writes a message and reads the answer.
struct Talk {
  std::unique_ptr<OpenFile> open;
  explicit Talk(Cards& cards) {
    auto file = cards.file("rpc");
    REQUIRE(file);
    auto opened = file->open(file, {});
    REQUIRE(opened);
    open = std::move(*opened);
  }
  std::string say(const std::string& text) {
    std::string said;
    open->write(text, std::make_shared<Operation>(Caller{}), [&](Result<size_t> result) {
      said = result ? std::to_string(*result) : strerrorname_np(result.error().code);
    });
    return said;
  }
  std::string hear(size_t size = 4096) {
    std::string heard;
    open->read(99, size, std::make_shared<Operation>(Caller{}),
               [&](Result<std::string> text) { heard = *text; });
    return heard;
  }
};

}  // namespace

TEST_CASE("pcc files: each active queue pair has a directory, which goes with it") {
  Cards cards;
  cards.activate(17);
  CHECK(cards.entries("qps") == Names{"17"});
  CHECK(cards.entries("qps/17") == Names{"window", "cnp", "ctrl_count", "rtt_ns", "rtt_timeouts",
                                         "late_calls", "rate", "pid", "comm", "algo"});
  CHECK(cards.read("qps/17/pid") == "132044");
  CHECK(cards.read("qps/17/comm") == "ib_write_bw");
  CHECK(cards.read("qps/17/window") == "4294967295");
  CHECK(cards.read("qps/17/algo") == "-");
  cards.activate(18);
  auto window = cards.file("qps/17/window");
  cards.deactivate(17);
  CHECK(cards.entries("qps") == Names{"18"});
  CHECK(window->removed());
  // Reused number: another queue pair, although no reader saw the number free.
  auto other = cards.file("qps/18/pid");
  cards.device().registers().deactivate(18);
  cards.device().registers().prepare(18, QpOwner{7, "other"});
  cards.device().registers().activate(18);
  CHECK(cards.read(other) == "ENODEV");
  CHECK_FALSE(other->removed());  // not before somebody looks
  CHECK(cards.read("qps/18/pid") == "7");
  CHECK(other->removed());
  CHECK(cards.entries("class/infiniband/mb_1/pcc/qps").empty());
  cards.bind(false);
  cards.bind(true);
  CHECK(cards.entries("qps") == Names{"18"});
}

TEST_CASE("pcc files: parameters show what the algorithm made of them") {
  Cards cards;
  start(cards, "dcqcn");
  CHECK(cards.read("params/wai") == "80");
  CHECK(cards.store("params/wai", "9\n") == "EINVAL");  // a second newline, as of knobs
  CHECK(cards.store("algo", "dcqcn\n") == "EINVAL");
  cards.card().present = {{"wai", "120"}};
  CHECK(cards.read("params/wai") == "120");
  cards.card().present = {{"wai", "160"}};
  CHECK_THAT(cards.read("status"), Catch::Contains("  wai: 160"));
  // The card does not answer in time.
  cards.card().present = {{"wai", "200"}};
  cards.card().refuse = Error{ETIMEDOUT, "busy"};
  CHECK(cards.read("params/wai") == "160");
  cards.card().refuse = Error{ESRCH, "gone"};
  CHECK_THAT(cards.read("status"), Catch::Contains("  wai: 160"));
  // The device leaves while a reader waits.
  cards.card().hold = true;
  auto wai = cards.file("params/wai");
  CHECK(cards.read(wai) == "no answer");
  cards.bind(false);
  CHECK(cards.read(wai) == "ENODEV");
}

TEST_CASE("pcc files: a queue pair shows its own pages, not those of an earlier life") {
  Cards cards;
  cards.activate(17);
  cards.signals(17).cnps = 12;
  cards.signals(17).rtt_ns = 4321;
  cards.signals(17).rate_bps = 9'000'000'000;
  CHECK(cards.read("qps/17/cnp") == "12");
  cards.signals(17).window = 4096;  // CFR's
  CHECK(cards.read("qps/17/window") == "4096");
  CHECK_THAT(cards.read("status"), Catch::Contains(" 4096\n"));
  cards.signals(17).window = ROCEFS_NO_WINDOW;
  CHECK(cards.store("qps/17/algo", "dcqcn") == "EINVAL");
  start(cards);
  cards.set_window(17, 8192);
  auto& control = cards.control(17);
  control.slot = 1;
  control.calls = 150;
  control.cnp_baseline = 12;
  control.rtt_timeouts = 3;
  control.late_calls = 2;
  cards.signals(17).cnps = 14;
  CHECK(cards.read("qps/17/window") == "8192");
  CHECK(cards.read("qps/17/cnp") == "2");
  CHECK(cards.read("qps/17/ctrl_count") == "150");
  CHECK(cards.read("qps/17/rtt_ns") == "4321");
  CHECK(cards.read("qps/17/rtt_timeouts") == "3");
  CHECK(cards.read("qps/17/rate") == "9000000000");
  CHECK(cards.read("qps/17/algo") == "dcqcn");
  CHECK_THAT(cards.read("status"), Catch::Contains("Other algorithm: dcqcn (QP 17)"));
  CHECK(cards.store("qps/17/algo", "dcqcn") == "ok");
  CHECK(cards.last_order() == "apply 1 to 17");
  CHECK(cards.read("algo") == "aimd");
  // Window of an earlier generation: ignored.
  cards.deactivate(17);
  cards.activate(17);
  CHECK(cards.read("qps/17/window") == "4294967295");
  CHECK(cards.read("qps/17/ctrl_count") == "0");
  CHECK(cards.store("state", "stop") == "ok");
  CHECK(cards.read("qps/17/algo") == "-");
}

TEST_CASE("pcc files: the snapshot has the files of all queue pairs as CSV") {
  Cards cards;
  const std::string names =
      "qp,window,cnp,ctrl_count,rtt_ns,rtt_timeouts,late_calls,rate,pid,comm,algo";
  CHECK(cards.read("snapshot") == names);
  cards.activate(17);
  cards.signals(17).cnps = 12;
  cards.signals(17).rtt_ns = 4321;
  cards.signals(17).rate_bps = 9'000'000'000;
  CHECK(cards.read("snapshot") ==
        names + "\n17,4294967295,12,0,4321,0,0,9000000000,132044,ib_write_bw,-");
  start(cards);
  cards.set_window(17, 8192);
  auto& control = cards.control(17);
  control.slot = 1;
  control.calls = 150;
  control.cnp_baseline = 10;
  control.rtt_timeouts = 3;
  control.late_calls = 2;
  cards.activate(18, 7, "a,\"b\"\nc");
  std::string want = names;
  for (const std::string qp : {"17", "18"}) {
    want += "\n" + qp;
    for (const std::string& file : cards.entries("qps/" + qp)) {
      std::string text = cards.read("qps/" + qp + "/" + file);
      want += "," + (file == "comm" && qp == "18" ? "\"a,\"\"b\"\"?c\"" : text);
    }
  }
  CHECK(cards.read("snapshot") == want);
  CHECK(cards.read("qps/18/comm") == "a,\"b\"?c");
  cards.deactivate(17);
  cards.deactivate(18);
  CHECK(cards.read("snapshot") == names);
}

TEST_CASE("pcc files: the status has the format of the reference") {
  Cards cards;
  const std::string head =
      "Device: mb_0\n"
      "============================================================\n"
      "Active QPs:\n"
      "QP        PID       Process           Ctrl Count  CNP       Window Size\n"
      "---------------------------------------------------------------------------\n";
  CHECK(cards.read("status") == head + "Algorithm: -\nNum threads: 1");
  cards.activate(17);
  cards.activate(18);
  start(cards);
  cards.set_window(17, 8192);
  cards.control(17).calls = 150;
  CHECK(cards.read("status") ==
        head +
            "17        132044    ib_write_bw       150         0         8192\n"
            "18        132044    ib_write_bw       0           0         "
            "unlimited\n"
            "Algorithm: aimd\n"
            "Num threads: 1\n"
            "Parameters:\n"
            "  alpha: 100\n"
            "  beta: 0.5");
  CHECK(cards.read("slow_calls") == "0");
  cards.card().control->at<rocefs_control_page>(0)->slow_calls = 7;
  CHECK(cards.read("slow_calls") == "7");
  CHECK(cards.read("status").ends_with("\n  beta: 0.5\nSlow calls: 7"));
  cards.card().control->at<rocefs_control_page>(0)->slow_calls = 0;
  REQUIRE(cards.store("algo", "dcqcn") == "ok");
  cards.control(17).slot = 1;
  CHECK(
      cards.read("status").ends_with("Parameters:\n  g: 0.0625\n  max_window: 524288\n  wai: 80"));
  REQUIRE(cards.store("num_threads", "5") == "ok");
  REQUIRE(cards.store("state", "stop") == "ok");
  CHECK(cards.read("status").find("Algorithm: dcqcn\nNum threads: 5\n") != std::string::npos);
}

TEST_CASE("pcc files: the trace has the newest entries of the last run, oldest first") {
  Cards cards;
  const std::string names = "time_ns,qp,event,old_window,new_window,cnp,rtt_ns,algo";
  CHECK(cards.read("trace") == names);
  start(cards);
  auto& page = *cards.card().control->at<rocefs_control_page>(0);
  page.trace[0] = {1000, 17, 0, ROCEFS_NO_WINDOW, 524288, 0, 0};
  page.trace[1] = {2000, 17, 0, 524288, 262144, 2, 9000};
  page.trace[2] = {3000, 17, 1, 262144, 262244, 0, 0};
  page.trace[3] = {4000, 17, 5, 262244, 262245, 0, 0};
  page.traced = 4;
  CHECK(cards.read("trace") == names +
                                   "\n1000,17,cut,4294967295,524288,0,0,aimd"
                                   "\n2000,17,cut,524288,262144,2,9000,aimd"
                                   "\n3000,17,raise,262144,262244,0,0,dcqcn"
                                   "\n4000,17,raise,262244,262245,0,0,-");
  REQUIRE(cards.store("state", "stop") == "ok");
  page.traced = ROCEFS_TRACE_ENTRIES + 1;  // entry 0 has been overwritten
  std::string text = cards.read("trace");
  CHECK(std::count(text.begin(), text.end(), '\n') == ROCEFS_TRACE_ENTRIES);
  CHECK(text.starts_with(names + "\n2000,"));
  CHECK(text.ends_with("\n1000,17,cut,4294967295,524288,0,0,aimd"));
  page.traced = ~uint64_t{0};
  text = cards.read("trace");
  CHECK(std::count(text.begin(), text.end(), '\n') == ROCEFS_TRACE_ENTRIES);
}

TEST_CASE("pcc files: a mode takes effect when the driver binds the device again, and persists") {
  Cards cards;
  CHECK(cards.log == Names{"mango_core 0000:2b:00.0: PCC mode: (soc)",
                           "mango_core 0000:ac:00.0: PCC mode: (soc)"});
  CHECK(cards.store("mode", "Host") == "EINVAL");
  CHECK(cards.store("mode", "host") == "ok");
  CHECK(cards.read("mode") == "host");
  CHECK(cards.read("mode_active") == "soc");
  CHECK(cards.pcc->host_modes().none());
  cards.bind(false);
  cards.bind(true);
  CHECK(cards.read("mode") == "host");
  CHECK(cards.read("mode_active") == "host");
  CHECK(cards.log.back() == "mango_core 0000:2b:00.0: PCC mode: (host)");
  CHECK(cards.pcc->host_modes() == Pcc::HostModes(1));
  start(cards);  // host mode runs as well
}

TEST_CASE("pcc files: after a reload of the driver that ended PCC, CFR is what it was before") {
  Cards cards;
  const std::string enable = "class/infiniband/mb_0/cfr/enable";
  for (const char* before : {"1", "0"}) {
    REQUIRE(cards.store(enable, before) == "ok");
    start(cards);
    CHECK(cards.read(enable) == "0");
    cards.bind(false);
    cards.bind(true);
    CHECK(cards.read("state") == "inactive");
    CHECK(cards.read(enable) == before);
    CHECK(cards.cfr_acts() == (before[0] == '1'));
  }
  // Without PCC each knob has its default.
  REQUIRE(cards.store(enable, "1") == "ok");
  cards.bind(false);
  cards.bind(true);
  CHECK(cards.read(enable) == "0");
}

TEST_CASE("pcc files: a management link has both addresses in one subnet, or neither") {
  Cards cards;
  CHECK(cards.read("class/net/mango_mgmt0/host_ip") == "192.168.10.1");
  CHECK(cards.read("class/net/mango_mgmt1/soc_ip") == "192.168.20.2");
  CHECK(cards.read("class/net/mango_mgmt1/subnet") == "24");
  const std::pair<const char*, const char*> refused[] = {{"host_ip", ""},
                                                         {"host_ip", "192.168.10"},
                                                         {"host_ip", "192.168.11.1"},
                                                         {"soc_ip", "x"},
                                                         {"soc_ip", "192.168.10.1"},
                                                         {"soc_ip", "192.168.010.2"},
                                                         {"subnet", "0"},
                                                         {"subnet", "31"},
                                                         {"subnet", ""},
                                                         {"subnet", "24 "},
                                                         {"subnet", "08"},
                                                         {"host_ip", "fe80::1"},
                                                         {"host_ip", "192.168.10.256"}};
  for (auto [name, text] : refused) {
    INFO(name << " " << text);
    CHECK(cards.store(kLink + std::string(name), text) == "EINVAL");
  }
  CHECK(cards.store("class/net/mango_mgmt0/subnet", "30") == "ok");
  const std::string in = "class/net/mango_mgmt0/";
  CHECK(set(cards, in + "host_ip=10.0.0.1 " + in + "soc_ip=10.1.0.1") == "EINVAL");
  CHECK(cards.read("class/net/mango_mgmt0/host_ip") == "192.168.10.1");
  CHECK(set(cards, in + "host_ip=10.0.0.1 " + in + "soc_ip=10.1.0.1 " + in + "subnet=8") == "ok");
  cards.bind(false);
  CHECK(cards.read("class/net/mango_mgmt0/soc_ip") == "10.1.0.1");
}

TEST_CASE("pcc files: a management link refuses addresses that no host can have") {
  Cards cards;
  const std::pair<const char*, const char*> refused[] = {
      {"192.168.10.0", "the address of the network itself"},
      {"192.168.10.255", "the broadcast address of its network"},
      {"255.255.255.255", "the broadcast address"},
      {"0.0.0.0", "the unspecified address"},
      {"127.0.0.1", "a loopback address"},
      {"224.0.0.1", "a multicast address"},
      {"239.255.255.255", "a multicast address"}};
  for (const char* name : {"host_ip", "soc_ip"}) {
    for (auto [address, reason] : refused) {
      CHECK(cards.store(kLink + std::string(name), address) == "EINVAL");
      CHECK(cards.why == fmt::format("{} {} is {}", name, address, reason));
    }
  }
  CHECK(cards.store("class/net/mango_mgmt0/host_ip", "192.168.10.254") == "ok");
  // The ends of a smaller network within the former one.
  const std::string in = kLink;
  CHECK(set(cards, in + "host_ip=192.168.10.4 " + in + "soc_ip=192.168.10.6 " + in + "subnet=30") ==
        "EINVAL");
  CHECK(set(cards, in + "host_ip=192.168.10.5 " + in + "soc_ip=192.168.10.7 " + in + "subnet=30") ==
        "EINVAL");
  CHECK(set(cards, in + "host_ip=192.168.10.5 " + in + "soc_ip=192.168.10.6 " + in + "subnet=30") ==
        "ok");
}

TEST_CASE("pcc files: without addresses no order reaches the card, except in host mode") {
  Cards cards({}, false);
  CHECK(cards.read("class/net/mango_mgmt0/host_ip").empty());
  REQUIRE(cards.store("plugin_dir", "/plugins") == "ok");
  for (auto [name, order] : {std::pair{"algo", "aimd"},
                             {"state", "start"},
                             {"load", "1"},
                             {"unload", "aimd"},
                             {"update", "aimd alpha=1"}}) {
    INFO(name);
    CHECK(cards.store(name, order) == "EHOSTUNREACH");
    CHECK(cards.why.find("mango_mgmt0") != std::string::npos);
  }
  CHECK(cards.store("state", "stop") == "ok");
  CHECK(Talk(cards).say("ping") == "EHOSTUNREACH");
  CHECK(cards.card().orders.empty());
  REQUIRE(cards.store("mode", "host") == "ok");
  cards.bind(false);
  cards.bind(true);
  start(cards);
  CHECK(Talk(cards).say("ping") == "EOPNOTSUPP");
}

TEST_CASE("pcc files: each open rpc file has its own answer") {
  Cards cards;
  Talk one(cards), other(cards);
  CHECK(one.hear().empty());
  CHECK(one.say("ping\n") == "5");
  CHECK(other.say("echo Hello  world\n") == "18");
  CHECK(cards.last_order() == "echo Hello  world");
  CHECK(one.hear(3) == "pon");
  CHECK(one.hear() == "g\n");
  CHECK(one.hear().empty());
  CHECK(other.hear() == "Hello  world\n");
  CHECK(one.say("dump 17\n") == "8");
  CHECK(cards.last_order() == "dump 17");
  CHECK(one.hear() == "QP 17\n  a=1\n");
  for (const char* text : {"", "pong", "echo", "ping ", "dump", "dump x", "dump 16777216"})
    CHECK(one.say(text) == "EINVAL");
  cards.card().refuse = Error{EIO, "no card"};
  CHECK(one.say("ping") == "EIO");
  cards.bind(false);
  CHECK(one.say("ping") == "ENODEV");
}

TEST_CASE("pcc files: a program's claim excludes PCC from the device, and the reverse") {
  const PccClaims::Program mine{1, 77, "my_cc"}, other{2, 78, "other"};
  Cards cards({}, true, ClockMode::kReal);
  auto code = [](const Result<void>& result) {
    return result ? "ok" : strerrorname_np(result.error().code);
  };
  CHECK(code(cards.pcc->claim("mb_7", mine)) == std::string("ENODEV"));
  REQUIRE(cards.store("algo", "aimd") == "ok");
  CHECK(code(cards.pcc->claim("mb_0", mine)) == std::string("ok"));
  CHECK(code(cards.pcc->claim("mb_0", other)) == std::string("EBUSY"));
  CHECK(code(cards.pcc->claim("mb_1", other)) == std::string("ok"));
  CHECK(cards.store("state", "start") == "EBUSY");
  CHECK(cards.why == "my_cc (pid 77) has claimed mb_0");
  CHECK(!cards.device().cfr().controlled());

  cards.activate(17);
  std::shared_ptr<SharedMemory> control;
  auto run = [&](uint64_t program) {
    std::string said = "no answer";
    cards.pcc->run("mb_0", program, 2, [&](Result<PccClaims::Pages> pages) {
      said = pages ? "ok" : strerrorname_np(pages.error().code);
      if (pages) control = pages->control;
    });
    return said;
  };
  CHECK(run(other.id) == "ENODEV");
  CHECK(cards.read("state") == "inactive");
  CHECK(run(mine.id) == "ok");
  CHECK(cards.read("state") == "program");
  CHECK(cards.store("state", "stop") == "EBUSY");
  CHECK(cards.why == "my_cc (pid 77) has claimed mb_0");
  CHECK(run(mine.id) == "EBUSY");
  CHECK(cards.device().cfr().controlled());
  cards.card().control = control;
  cards.set_window(17, 4096);
  CHECK(cards.read("qps/17/window") == "4096");
  CHECK(cards.read("qps/17/algo") == "-");
  CHECK(cards.read("num_threads_active") == "2");
  CHECK(cards.read("status").find("Num threads: 2\n") != std::string::npos);
  CHECK(cards.read("status").find("Owner: my_cc (pid 77)") != std::string::npos);
  CHECK(cards.read("owner") == "my_cc (pid 77)");
  cards.pcc->stop("mb_0", mine.id, [](Result<void>) {});
  CHECK(cards.read("state") == "inactive");
  CHECK(cards.store("state", "stop") == "EBUSY");
  CHECK(!cards.device().cfr().controlled());
  CHECK(cards.read("qps/17/window") == "4294967295");
  CHECK(run(mine.id) == "ok");
  cards.pcc->release("mb_0", mine.id);
  CHECK(cards.read("owner") == "none");
  CHECK(!cards.device().cfr().controlled());
  CHECK(cards.store("state", "start") == "ok");
  CHECK(code(cards.pcc->claim("mb_0", mine)) == std::string("EBUSY"));
  CHECK(cards.store("state", "stop") == "ok");

  CHECK(code(cards.pcc->claim("mb_0", mine)) == std::string("ok"));
  CHECK(run(mine.id) == "ok");
  cards.bind(false);
  CHECK(cards.revoked == std::vector<uint64_t>{mine.id});
  CHECK(code(cards.pcc->claim("mb_0", other)) == std::string("ENODEV"));
}

TEST_CASE("pcc files: a user's own plugin directory is created on demand") {
  char top[] = "/tmp/rocefs-plugins-XXXXXX";
  REQUIRE(::mkdtemp(top));
  std::string own = std::string(top) + "/rocefs/mnt/mb_0";
  Cards cards({top, "rocefs/mnt", ::geteuid(), ::getegid()});
  CHECK(!std::filesystem::exists(own));
  CHECK(cards.read("plugin_dir") == own);
  struct stat status;
  REQUIRE(::stat(own.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0755);
  std::filesystem::remove_all(std::string(top) + "/rocefs");
  CHECK(cards.store("load", "1") == "ok");
  CHECK(cards.last_order() == "load " + own);
  CHECK(std::filesystem::is_directory(own));
  for (const char* text : {"plugins", "./x"}) CHECK(cards.store("plugin_dir", text) == "EINVAL");
  // Symbolic link in the path: not followed.
  std::filesystem::remove_all(std::string(top) + "/rocefs");
  std::filesystem::create_directory_symlink("/tmp", std::string(top) + "/rocefs");
  CHECK(cards.store("load", "1") == "ENOTDIR");
  std::filesystem::remove_all(std::string(top) + "/rocefs");
  auto again = std::make_unique<Cards>(OwnDirectories{top, "rocefs/mnt", ::geteuid(), ::getegid()});
  CHECK(again->read("plugin_dir") == own);
  again.reset();
  CHECK(!std::filesystem::exists(std::string(top) + "/rocefs/mnt"));
  std::filesystem::remove_all(top);
}
