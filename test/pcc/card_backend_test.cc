// CardBackend with a real process: orders, and the end of a process whose algorithm misbehaves.
#include "pcc/card/card_backend.h"

#include <dirent.h>
#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <fstream>

#include "pcc/algorithms/built_ins.h"
#include "test/pcc/card_rig.h"
#include "tools/mango-pccd/slow_call_log.h"

using namespace rocefs;
using namespace rocefs::test;
using Catch::Contains;
using Catch::EndsWith;
using Catch::Equals;
using Catch::StartsWith;

namespace {

constexpr unsigned kFirstPlugin = kBuiltIns;
constexpr uint32_t kQpn = 20;

// Reason of death of a card that runs this plugin on one queue pair.
std::string death_of(const std::string& plugin, unsigned pollers = 1) {
  PluginFolder directory({plugin});
  Card card;
  Pages pages;
  pages.activate(kQpn);
  REQUIRE(card.load(directory));
  REQUIRE(card.apply(kFirstPlugin));
  pid_t pid = card.pid();
  Result<void> started = card.start(pages, pollers);
  std::string why = card.death();
  if (!started) CHECK(started.error().reason == why);  // ended before the start was answered
  CHECK(card.pid() == 0);
  CHECK_THAT(why, StartsWith(fmt::format("mango-pccd (pid {})", pid)));
  CHECK(card.echo("back")->size() == 4);  // another process
  return why.substr(why.find(')') + 2);
}

// Number of living processes in the group.
int alive_in(pid_t group) {
  int alive = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::string line;
    std::getline(std::ifstream(entry.path() / "stat"), line);
    size_t end = line.rfind(')');
    char state;
    int parent, its_group;
    if (end == line.npos) continue;
    if (std::sscanf(line.c_str() + end + 1, " %c %d %d", &state, &parent, &its_group) != 3)
      continue;
    if (its_group == group && state != 'Z' && state != 'X') ++alive;
  }
  return alive;
}

}  // namespace

TEST_CASE("card: built-in algorithms are listed without a process") {
  Card card;
  auto built_ins = card.on_loop([&] { return card.backend->built_ins(); });
  REQUIRE(built_ins.size() == kBuiltIns);
  CHECK(built_ins[1].name == "dcqcn");
  CHECK(built_ins[1].parameters[0] == std::pair<std::string, std::string>("wai", "80"));
  CHECK(card.pid() == 0);
  CHECK(card.stop());
  CHECK(card.pid() == 0);
}

TEST_CASE("card: the first order starts the process, which inherits no descriptors") {
  if (!kernel_is_ours()) skip("a process has its emulator's command line here");
  Fd inherited(::open("/dev/null", O_RDONLY));  // not close-on-exec
  Card card;
  CHECK(card.echo("Hello, card\n%").value() == "Hello, card\n%");
  pid_t pid = card.pid();
  REQUIRE(pid != 0);
  std::string proc = "/proc/" + std::to_string(pid);
  std::string comm, line;
  std::getline(std::ifstream(proc + "/comm"), comm);
  CHECK(comm == "mango-pccd");
  std::getline(std::ifstream(proc + "/cmdline"), line, '\0');
  CHECK(line == "mango-pccd");
  // Standard descriptors, the socket, and the watchdog's eventfd.
  size_t open = 0;
  for (const auto& entry : std::filesystem::directory_iterator(proc + "/fd")) {
    int fd = std::stoi(entry.path().filename());
    ++open;
    CHECK(fd <= 4);
    if (fd == 0) CHECK(std::filesystem::read_symlink(entry) == "/dev/null");
    if (fd == 4) CHECK_THAT(std::filesystem::read_symlink(entry).string(), Contains("eventfd"));
  }
  CHECK(open <= 5);
  CHECK(card.echo("again").value() == "again");
  CHECK(card.pid() == pid);
}

TEST_CASE("card: a parameter that the algorithm writes is read as it is now") {
  PluginFolder directory({"counts"});
  Card card;
  auto read = [&] {
    return card.answer<PccAlgorithmInfo>(
        [](auto& backend, auto then) { backend.read(kFirstPlugin, std::move(then)); });
  };
  auto calls = [&] {
    Result<PccAlgorithmInfo> now = read();
    REQUIRE(now);
    REQUIRE(now->parameters.size() == 1);
    return std::stoul(now->parameters[0].second);
  };
  CHECK(read().error().code == ESRCH);
  CHECK(card.pid() == 0);  // reading starts no process
  Pages pages;
  pages.activate(kQpn);
  REQUIRE(card.load(directory));
  CHECK(calls() == 0);
  REQUIRE(card.apply(kFirstPlugin));
  REQUIRE(card.start(pages));
  CHECK(soon([&] { return calls() > 0; }));
  // A process that a debugger has stopped, for example.
  ::kill(card.pid(), SIGSTOP);
  CHECK(read().error().code == ETIMEDOUT);
  TimeNs begin = monotonic_ns();
  CHECK(read().error().code == ETIMEDOUT);
  CHECK(monotonic_ns() - begin < CardBackend::kReadPatience);  // only the first reader waits
  ::kill(card.pid(), SIGCONT);
  CHECK(soon([&] { return bool{read()}; }));
  CHECK(card.stop());
  CHECK(calls() == 0);
}

TEST_CASE("card: a run sets windows until it is stopped, and its parameters can be changed") {
  PluginFolder directory({"fixed"});
  Card card;
  Pages pages;
  pages.activate(kQpn);
  REQUIRE(card.load(directory));
  REQUIRE(card.apply(kFirstPlugin));
  REQUIRE(card.start(pages, 2));
  CHECK(soon([&] { return pages.window(kQpn) == 4096; }));
  CHECK(card.start(pages).error().code == EBUSY);
  auto update = [&](const PccBackend::Assignments& changes) {
    return card.answer<PccAlgorithmInfo>(
        [&](auto& backend, auto then) { backend.update(kFirstPlugin, changes, std::move(then)); });
  };
  Result<PccAlgorithmInfo> updated = update({{"window", "0x2000"}, {"factor", "2"}});
  REQUIRE(updated);
  CHECK(updated->parameters == PccBackend::Assignments{{"window", "8192"}, {"factor", "2"}});
  CHECK(soon([&] { return pages.window(kQpn) == 16384; }));
  CHECK(update({{"window", "1"}, {"nothing", "1"}}).error().code == ENOENT);
  CHECK(update({{"window", "much"}}).error().code == EINVAL);
  pages.activate(kQpn + 1);
  CHECK(soon([&] { return pages.window(kQpn + 1) == 16384; }));
  CHECK(card.apply(9).error().code == ENOENT);
  Result<void> one = card.answer<void>(
      [&](auto& backend, auto then) { backend.apply(0, kQpn + 5, std::move(then)); });
  CHECK(one.error().code == ENOENT);
  CHECK(card.stop());
  CHECK(card.stop());
  CHECK_FALSE(card.has_died());
}

TEST_CASE("card: in lockstep an algorithm is called only when it is due") {
  PluginFolder directory({"fixed"});
  Card card;
  Pages pages;
  pages.page()->virtual_clock = 1;
  pages.activate(kQpn);
  REQUIRE(card.load(directory));
  REQUIRE(card.apply(kFirstPlugin));
  auto round = [&](TimeNs now) {
    return card.answer<TimeNs>(
        [&](auto& backend, auto then) { backend.round(now, std::move(then)); });
  };
  CHECK(round(0).error().code == EINVAL);
  REQUIRE(card.start(pages, 0));
  REQUIRE(round(1000).value() == 1000 + 60 * kMicrosecond);
  CHECK(pages.window(kQpn) != 4096);
  CHECK(round(61 * kMicrosecond).value() == 121 * kMicrosecond);
  CHECK(pages.window(kQpn) == 4096);
}

TEST_CASE("card: an algorithm that divides by zero is named, with its queue pair") {
#ifndef __x86_64__
  skip("this machine divides integers by zero without a signal");
#endif
  CHECK(death_of("divides") == "died of SIGFPE in algorithm divides on QP 20");
  CHECK(death_of("divides", 8) == "died of SIGFPE in algorithm divides on QP 20");
}

TEST_CASE("card: an algorithm that overflows its stack is named") {
  CHECK(death_of("recurses") == "died of SIGSEGV in algorithm recurses on QP 20");
}

TEST_CASE("card: an algorithm that aborts, throws or exits is named") {
  CHECK(death_of("aborts") == "died of SIGABRT in algorithm aborts on QP 20");
  CHECK(death_of("throws") == "died of SIGABRT in algorithm throws on QP 20");
  CHECK(death_of("exits") == "ended: algorithm exits called exit() on QP 20");
  CHECK(death_of("leaves") == "ended with exit status 7");  // by _exit(2), which nothing sees
}

TEST_CASE("card: a plugin whose own thread dies is named") {
  CHECK(death_of("threads") == "died of SIGABRT in a thread of threads.so");
}

TEST_CASE("card: a plugin that dies when it is unloaded is named") {
  PluginFolder directory({"departs"});
  Card card;
  REQUIRE(card.load(directory));
  Result<void> gone = card.answer<void>(
      [](auto& backend, auto then) { backend.unload(kFirstPlugin, std::move(then)); });
  CHECK_FALSE(gone);
  CHECK_THAT(card.death(), EndsWith("died of SIGSEGV while it unloaded departs.so"));
}

TEST_CASE("card: an algorithm that does not return is ended after a second") {
  CHECK(death_of("loops") == "ended: algorithm loops has not returned for 1 s on QP 20");
}

TEST_CASE("card: an algorithm that writes past its parameters is ended") {
  CHECK(death_of("scribbles") == "ended: algorithm scribbles wrote past its parameters on QP 20");
}

TEST_CASE("card: an algorithm that loops is ended in lockstep too") {
  PluginFolder directory({"loops"});
  Card card;
  Pages pages;
  pages.page()->virtual_clock = 1;
  pages.activate(kQpn);
  REQUIRE(card.load(directory));
  REQUIRE(card.apply(kFirstPlugin));
  REQUIRE(card.start(pages, 0));
  auto round = [&](TimeNs now) {
    return card.answer<TimeNs>(
        [&](auto& backend, auto then) { backend.round(now, std::move(then)); });
  };
  REQUIRE(round(0));
  CHECK(round(kMillisecond).error().code == EIO);
  CHECK_THAT(card.death(), Contains("loops has not returned for 1 s"));
}

TEST_CASE("card: slow calls are counted, and reported once until the algorithm is applied again") {
  const std::string line = "1 algorithm slow takes longer than 100 ms on QP 20";
  PluginFolder directory({"slow"});
  Card card;
  Pages pages;
  pages.activate(kQpn);
  auto counted = [&](uint32_t calls) {
    auto* page = pages.control->at<rocefs_control_page>(0);
    return soon([&] { return __atomic_load_n(&page->slow_calls, __ATOMIC_RELAXED) >= calls; });
  };
  REQUIRE(card.load(directory));
  REQUIRE(card.apply(kFirstPlugin));
  REQUIRE(card.start(pages));
  CHECK(card.logged(line));
  CHECK(counted(3));
  CHECK(card.lines_with(line) == 1);
  REQUIRE(card.apply(kFirstPlugin));
  CHECK(card.logged(line, 2));
  CHECK(card.stop());
  CHECK_FALSE(card.has_died());
}

TEST_CASE("card: a slow algorithm is reported again after a minute") {
  SlowCallLog log;
  const TimeNs first = 100 * kSecond;
  CHECK(log.admit("a", first));
  CHECK(log.admit("b", first + kSecond));
  CHECK_FALSE(log.admit("a", first + 59 * kSecond));
  CHECK(log.admit("a", first + 60 * kSecond));
  CHECK_FALSE(log.admit("b", first + 60 * kSecond));
  CHECK_FALSE(log.admit("a", first + 61 * kSecond));
  log.forget();
  CHECK(log.admit("a", first + 61 * kSecond));
}

TEST_CASE("card: frequent log lines of an algorithm are partly suppressed") {
  PluginFolder directory({"chatters"});
  Card card;
  Pages pages;
  pages.activate(kQpn);
  REQUIRE(card.load(directory));
  REQUIRE(card.apply(kFirstPlugin));
  REQUIRE(card.start(pages));
  CHECK(card.logged("2 [poller 0][QP 20] chatter"));
  CHECK(card.logged("lines suppressed"));
  CHECK(card.stop());
}

TEST_CASE("card: a process that sends an invalid message is killed") {
  PluginFolder directory({"babbles"});
  Card card;
  Result<PccLoaded> loaded = card.load(directory);
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().code == EIO);
  CHECK_THAT(card.death(), Contains("'nonsense' is no message"));
  CHECK(card.pid() == 0);
}

TEST_CASE("card: a process that answers something else than it was asked is killed") {
  PluginFolder directory({"lies"});
  auto is_killed_for = [&](auto order) {
    Card card;
    Result<PccLoaded> loaded = card.load(directory);
    REQUIRE(loaded);
    CHECK(card_names(*loaded) == std::vector<std::string>{"lies"});
    CHECK(order(card).code == EIO);
    CHECK_THAT(card.death(), Contains("answers what was not asked"));
    CHECK(card.pid() == 0);
  };
  is_killed_for([](Card& card) { return card.echo("anything").error(); });
  is_killed_for([](Card& card) {
    return card
        .answer<PccAlgorithmInfo>([](auto& backend, auto then) {
          backend.update(kFirstPlugin, {{"a", "2"}}, std::move(then));
        })
        .error();
  });
  is_killed_for([](Card& card) {
    return card.answer<TimeNs>([](auto& backend, auto then) { backend.round(5, std::move(then)); })
        .error();
  });
}

TEST_CASE("card: a process that floods the daemon with messages is killed") {
  PluginFolder directory({"floods"});
  Card card;
  Result<PccLoaded> loaded = card.load(directory);
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().code == EIO);
  CHECK_THAT(card.death(), Contains("says too much"));
}

TEST_CASE(
    "card: a process that passes a descriptor whose close blocks is killed, and blocks nobody") {
  PluginFolder directory({"lingers"});
  Card card;
  Result<PccLoaded> loaded = card.load(directory);
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().code == EIO);
  CHECK_THAT(card.death(), Contains("'' is no message"));
  CHECK(card.echo("back").value() == "back");
}

TEST_CASE("card: kill -9 is noticed, and the next order starts a new process") {
  Card card;
  REQUIRE(card.echo("there"));
  pid_t pid = card.pid();
  ::kill(pid, SIGKILL);
  CHECK(card.death() == fmt::format("mango-pccd (pid {}) died of SIGKILL", pid));
  CHECK(card.echo("back").value() == "back");
  CHECK(card.pid() != pid);
}

TEST_CASE("card: processes that a plugin has started end with the card's process") {
  for (bool by_itself : {true, false}) {
    PluginFolder directory({"forks"});
    Card card;
    REQUIRE(card.load(directory));
    pid_t pid = card.pid();
    CHECK(alive_in(pid) >= 2);  // some may not have left the group yet
    if (by_itself) {
      ::kill(pid, SIGKILL);
      CHECK(card.death() == fmt::format("mango-pccd (pid {}) died of SIGKILL", pid));
    } else {
      REQUIRE(card.answer<void>([](auto& backend, auto then) { backend.forget(std::move(then)); }));
    }
    CHECK(soon([&] { return alive_in(pid) == 0; }));
    CHECK(card.echo("back").value() == "back");
  }
}

TEST_CASE("card: a stopped process is noticed during a run, even without orders") {
  Card card(300 * kMillisecond);
  Pages pages;
  pages.activate(kQpn);
  REQUIRE(card.start(pages));
  pid_t pid = card.pid();
  ::kill(pid, SIGSTOP);
  CHECK(card.death() == fmt::format("mango-pccd (pid {}) did not answer 'echo' in time", pid));
  CHECK(card.pid() == 0);
}

TEST_CASE("card: a stopped process is left alone outside a run") {
  constexpr TimeNs kPatience = 300 * kMillisecond;
  Card card(kPatience);
  Pages pages;
  REQUIRE(card.start(pages));
  REQUIRE(card.stop());
  auto timers_of_the_run = CardBackend::kPulse + 2 * kPatience;
  ::kill(card.pid(), SIGSTOP);
  std::this_thread::sleep_for(std::chrono::nanoseconds(timers_of_the_run));
  CHECK_FALSE(card.has_died());
  ::kill(card.pid(), SIGCONT);
}

TEST_CASE("card: a process that does not answer is killed, and all its orders fail") {
  Card card(300 * kMillisecond);
  Result<std::string> first = card.echo("there");
  REQUIRE(first);
  pid_t pid = card.pid();
  ::kill(pid, SIGSTOP);
  std::promise<int> code;
  card.loop.post([&] {
    card.backend->apply(0, std::nullopt, [](Result<void>) {});
    card.backend->echo("late",
                       [&](Result<std::string> said) { code.set_value(said.error().code); });
  });
  CHECK(code.get_future().get() == ETIMEDOUT);
  CHECK(card.death() == fmt::format("mango-pccd (pid {}) did not answer 'apply' in time", pid));
  CHECK(soon([&] { return ::kill(pid, 0) != 0 && errno == ESRCH; }));
}

TEST_CASE("card: an order given while a death is reported goes to the next process") {
  Card card;
  REQUIRE(card.echo("there"));
  pid_t pid = card.pid();
  std::promise<bool> told_before;
  bool is_lost = false;
  std::string said;
  card.loop.post([&] {
    ::kill(pid, SIGSTOP);
    card.backend->echo("lost", [&](Result<std::string> lost) {
      is_lost = !lost;
      card.backend->echo("next", [&](Result<std::string> next) {
        said = next.value();
        told_before.set_value(card.has_died());
      });
    });
    ::kill(pid, SIGKILL);
  });
  CHECK(told_before.get_future().get());
  CHECK(is_lost);
  CHECK(said == "next");
}

TEST_CASE("card: a missing program fails the order, and no death is reported") {
  if (!tells_failed_spawns()) skip("posix_spawn(3) does not tell here that there is no program");
  Card card(kSecond, "/nonexistent/mango-pccd");
  Result<std::string> said = card.echo("anyone");
  REQUIRE_FALSE(said);
  CHECK(said.error().code == EIO);
  CHECK(said.error().reason ==
        "/nonexistent/mango-pccd cannot be started: No such file or directory");
  CHECK_FALSE(card.has_died());
}

TEST_CASE("card: the process ends with its daemon, whatever its pollers do") {
  PluginFolder directory({"slow"});
  Pages pages;
  pages.activate(kQpn);
  pid_t pid = 0;
  {
    Card card;
    REQUIRE(card.load(directory));
    REQUIRE(card.apply(kFirstPlugin));
    REQUIRE(card.start(pages, 4));
    pid = card.pid();
  }
  CHECK(soon([&] {
    std::string line;
    std::getline(std::ifstream(fmt::format("/proc/{}/stat", pid)), line);
    return line.empty() || line.find(") Z ") != line.npos;
  }));
}
