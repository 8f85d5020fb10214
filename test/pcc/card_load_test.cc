// CardBackend with a real process: plugins are loaded, refused, and loaded again.
#include "pcc/card/card_backend.h"

#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cerrno>
#include <fstream>
#include <future>

#include "pcc/algorithms/built_ins.h"
#include "test/pcc/card_rig.h"
#include "test/pcc/compiled.h"

using namespace rocefs;
using namespace rocefs::test;
using Catch::Contains;
using Catch::Equals;

namespace {

constexpr unsigned kFirstPlugin = kBuiltIns;
constexpr uint32_t kQpn = 20;

constexpr const char* kCrashed = "it dies of SIGSEGV while it is loaded";

}  // namespace

TEST_CASE("card: plugins are loaded, listed in order, refused one by one and unloaded") {
  PluginFolder directory({"nameless", "fixed"});
  Card card;
  Result<PccLoaded> loaded = card.load(directory);
  REQUIRE(loaded);
  REQUIRE(loaded->files.size() == 2);
  CHECK(loaded->files[0].name == "fixed.so");
  CHECK(loaded->files[0].loaded == "fixed");
  CHECK(loaded->files[1].name == "nameless.so");
  CHECK_THAT(loaded->files[1].reason, Contains("mango_pcc_algo_plugin"));
  CHECK(card_names(*loaded) == std::vector<std::string>{"aimd", "dcqcn", "rttvegas", "fixed"});
  CHECK(loaded->algorithms[3].desc == "a window that stays as it is");
  CHECK(loaded->algorithms[3].parameters ==
        PccBackend::Assignments{{"window", "4096"}, {"factor", "1"}});
  CHECK(card.logged("fixed is made in slot 3"));

  directory.add("slow");
  loaded = card.load(directory);
  REQUIRE(loaded);
  REQUIRE(loaded->files.size() == 2);  // the refused file is tried again
  CHECK(loaded->files[1].loaded == "slow");
  CHECK(card_names(*loaded).size() == 5);

  auto unload = [&](unsigned slot) {
    return card.answer<void>(
        [&](auto& backend, auto then) { backend.unload(slot, std::move(then)); });
  };
  CHECK(unload(0).error().code == EPERM);
  CHECK(unload(9).error().code == ENOENT);
  CHECK(unload(3));
  CHECK(card_names(*card.load(directory)).size() == 5);  // loaded again
}

TEST_CASE("card: a valid file after many refused ones is loaded") {
  PluginFolder directory({"fixed"});
  constexpr size_t kRefused = 400;
  for (size_t i = 0; i < kRefused; ++i) {
    std::ofstream(fmt::format("{}/a%\x01 {}.so", directory.path, i)) << "no library";
  }
  Card card;
  Result<PccLoaded> loaded = card.load(directory);
  REQUIRE(loaded);
  size_t told = loaded->files.size() - 2;
  CHECK(told > 30);
  CHECK(told < kRefused);
  CHECK(loaded->files[told].loaded == "fixed");
  const PccLoaded::File& last = loaded->files.back();
  CHECK(last.name == fmt::format("{} more files", kRefused - told));
  CHECK(last.loaded.empty());
  CHECK(last.reason == "there is no room to say why");
  CHECK(card_names(*loaded).back() == "fixed");
  CHECK(card.load(directory)->files.size() == told + 1);  // not loaded again
}

TEST_CASE("card: a missing directory is ENOENT") {
  Card card;
  Result<PccLoaded> loaded = card.answer<PccLoaded>(
      [](auto& backend, auto then) { backend.load("/nonexistent", false, std::move(then)); });
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().code == ENOENT);
}

TEST_CASE("card: plugins that crash, end the process or hang at their load hide no others") {
  PluginFolder directory({"fixed"});
  Card card;
  Pages pages;
  pages.activate(kQpn);
  REQUIRE(card.load(directory));
  REQUIRE(card.apply(kFirstPlugin));
  REQUIRE(card.start(pages));
  pid_t pid = card.pid();

  PluginFiles files;
  auto add = [&](const std::string& name, const std::string& what) {
    std::string file = files.compile(
        name, "#include <unistd.h>\n__attribute__((constructor)) void at_load() { " + what + " }");
    std::filesystem::copy(file, directory.path);
  };
  for (const char* name : {"crashes", "hangs", "slow"}) directory.add(name);
  add("leaves_good", "_exit(0);");
  add("leaves_bad", "_exit(9);");
  add("shuts", "close(4); for (;;) pause();");  // tells its parent nothing, and stays
  Result<PccLoaded> loaded = card.load(directory);
  REQUIRE(loaded);
  std::vector<std::string> said;
  for (const PccLoaded::File& file : loaded->files) {
    said.push_back(file.name + ": " + (file.loaded.empty() ? file.reason : "loaded"));
  }
  CHECK_THAT(said, Equals(std::vector<std::string>{
                       std::string("crashes.so: ") + kCrashed,
                       "hangs.so: it has not been loaded after 3 s",
                       "leaves_bad.so: it ends the process with status 9 while it is loaded",
                       "leaves_good.so: it ends the process with status 0 while it is loaded",
                       "shuts.so: it has not been loaded after 3 s",
                       "slow.so: loaded",
                   }));
  CHECK(card.pid() == pid);
  CHECK_FALSE(card.has_died());
  CHECK(soon([&] { return pages.window(kQpn) == 4096; }));
  CHECK(card.stop());
}

TEST_CASE("card: an order behind a load that takes its time is not late") {
  PluginFolder directory({"fixed"});
  Card card(kSecond);  // less than a plugin that hangs takes
  Pages pages;
  pages.page()->virtual_clock = 1;
  pages.activate(kQpn);
  REQUIRE(card.load(directory));
  REQUIRE(card.apply(kFirstPlugin));
  REQUIRE(card.start(pages, 0));
  directory.add("hangs");
  std::promise<bool> rounded;
  card.on_loop([&] {
    card.backend->load(directory.path, false, [](Result<PccLoaded>) {});
    card.backend->round(0, [&](Result<TimeNs> next) { rounded.set_value(bool{next}); });
    return 0;
  });
  CHECK(rounded.get_future().get());
  CHECK_FALSE(card.has_died());
}

TEST_CASE("card: lines that a plugin prints are logged, and a flood of them stops nobody") {
  PluginFolder directory({});
  PluginFiles files;
  std::filesystem::copy(
      files.compile("prints",
                    "#include <libmango.h>\n#include <unistd.h>\n#include <string>\n"
                    R"(
static void say(int to, const std::string &text) { (void)!write(to, text.data(), text.size()); }
__attribute__((constructor)) void at_load() { say(1, "one\ntw"); say(2, "o\x1b[1m\nan end"); }
static void call(void *) {
  static const std::string flood(100000, 'x');
  for (int i = 0; i < 100; ++i) say(1, flood);
  mango_pcc_window_update(4096);
}
extern "C" const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "prints", .desc = "", .init_params = nullptr, .destroy_params = nullptr,
    .algo_fn = call};
)"),
      directory.path);
  Card card;
  Pages pages;
  pages.activate(kQpn);
  REQUIRE(card.load(directory));
  CHECK(card.logged("2 output: one\n2 output: two?[1m\n"));
  REQUIRE(card.apply(kFirstPlugin));
  REQUIRE(card.start(pages));
  CHECK(card.logged("2 output: " + std::string(1024, 'x') + "\n"));
  CHECK(card.logged("lines suppressed"));
  CHECK(soon([&] { return pages.window(kQpn) == 4096; }));
  CHECK(card.stop());
  CHECK_FALSE(card.has_died());
}

TEST_CASE("card: nothing times out while a debugger is attached") {
  if (!has_ptrace()) skip("no ptrace(2) here");
  PluginFolder directory({"loops"});
  Card card(kSecond);
  Pages pages;
  pages.activate(kQpn);
  card.on_loop([&] { return card.backend->set_debug(true), 0; });
  REQUIRE(card.load(directory));
  REQUIRE(card.apply(kFirstPlugin));
  // All threads that there are so far, as a debugger stops them.
  std::vector<pid_t> threads;
  for (const auto& entry :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", card.pid()))) {
    threads.push_back(std::stoi(entry.path().filename()));
  }
  for (pid_t thread : threads) {
    REQUIRE(::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) == 0);
    REQUIRE(::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) == 0);
    REQUIRE(::waitpid(thread, nullptr, __WALL) == thread);
  }
  // An order waits for longer than its patience. The algorithm, which loops, is called once the
  // threads go on, still traced: longer than the watchdog's patience.
  auto started = std::async(std::launch::async, [&] { return bool(card.start(pages)); });
  CHECK(started.wait_for(std::chrono::milliseconds(2500)) == std::future_status::timeout);
  CHECK_FALSE(card.has_died());
  for (pid_t thread : threads) ::ptrace(PTRACE_CONT, thread, nullptr, nullptr);
  CHECK(started.get());
  CHECK(card.logged("a debugger is attached: the watchdog waits"));
  CHECK_FALSE(card.has_died());
  for (pid_t thread : threads) {
    ::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
    ::waitpid(thread, nullptr, __WALL);
    ::ptrace(PTRACE_DETACH, thread, nullptr, nullptr);
  }
  CHECK_THAT(card.death(), Contains("algorithm loops has not returned for 1 s"));
}

TEST_CASE("card: a plugin that traces its own process is no debugger") {
  PluginFolder directory({});
  PluginFiles files;
  std::filesystem::copy(files.compile("traced",
                                      "#include <libmango.h>\n#include <sys/ptrace.h>\n"
                                      R"(
__attribute__((constructor)) void at_load() { ptrace(PTRACE_TRACEME, 0, nullptr, nullptr); }
static void call(void *) { for (volatile bool ever = true; ever;) {} }
extern "C" const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "traced", .desc = "", .init_params = nullptr, .destroy_params = nullptr,
    .algo_fn = call};
)"),
                        directory.path);
  Card card;
  Pages pages;
  pages.activate(kQpn);
  REQUIRE(card.load(directory));
  REQUIRE(card.apply(kFirstPlugin));
  REQUIRE(card.start(pages));
  CHECK_THAT(card.death(), Contains("algorithm traced has not returned for 1 s"));
}

namespace {

// Source of the plugin `tuned`, which sets its parameter as the window. Its state `calls` is no
// parameter. `more`: code behind it.
std::string tuned(unsigned window, const std::string& more, const std::string& name = "tuned") {
  return "#include <libmango.h>\n" + fmt::format(R"(
struct Params {{ uint32_t window, calls; }};
static void *make(mango_pcc_h pcc, unsigned slot, size_t *size) {{
  static Params params = {{{}, 0}};
  static const mango_pcc_param_t kParams[] = {{REGISTER_UINT32_PARAM(Params, window)}};
  mango_pcc_params_register(pcc, slot, kParams, 1);
  *size = sizeof params;
  return &params;
}}
static void call(void *params) {{
  auto *p = static_cast<Params *>(params);
  mango_pcc_window_update(p->window + ++p->calls);
}}
extern "C" const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {{
    .name = "{}", .desc = "", .init_params = make, .destroy_params = nullptr, .algo_fn = call}};
{})",
                                                 window, name, more);
}

}  // namespace

TEST_CASE("card: a plugin that was built again takes its place while it runs") {
  PluginFolder directory({});
  PluginFiles files;
  auto build = [&](const std::string& source) {
    std::filesystem::copy(files.compile("tuned", source), directory.path,
                          std::filesystem::copy_options::overwrite_existing);
  };
  build(tuned(100'000, ""));
  Card card;
  Pages pages;
  pages.page()->virtual_clock = 1;
  pages.activate(kQpn);
  auto round = [&, now = TimeNs{0}]() mutable {
    auto due =
        card.answer<TimeNs>([&](auto& backend, auto then) { backend.round(now, std::move(then)); });
    REQUIRE(due);
    now = *due;
    return pages.window(kQpn);
  };
  auto load = [&](bool force = false) {
    Result<PccLoaded> loaded = card.load(directory, force);
    REQUIRE(loaded);
    return loaded->files;
  };
  REQUIRE(load().size() == 1);
  REQUIRE(card.apply(kFirstPlugin));
  REQUIRE(card.start(pages, 0));
  round();
  CHECK(round() == 100'001);
  CHECK(load().empty());

  build(tuned(200'000, ""));
  std::vector<PccLoaded::File> again = load();
  REQUIRE(again.size() == 1);
  CHECK(again[0].loaded == "tuned");
  CHECK(again[0].again);
  CHECK(pages.window(kQpn) == 100'001);
  CHECK(round() == 200'001);

  // Values that were set stay, and state that the author keeps.
  REQUIRE(card.answer<PccAlgorithmInfo>([&](auto& backend, auto then) {
    backend.update(kFirstPlugin, {{"window", "300000"}}, std::move(then));
  }));
  CHECK(round() == 300'002);
  build(tuned(400'000, R"(
extern "C" void mango_pcc_algo_keep(const void *before, size_t before_size, void *after, size_t) {
  if (before_size == sizeof(Params))
    static_cast<Params *>(after)->calls = static_cast<const Params *>(before)->calls;
})"));
  CHECK(load().size() == 1);
  CHECK(round() == 300'003);
  CHECK(load(true).size() == 1);
  CHECK(round() == 300'004);

  build(tuned(400'000, R"(
#include <signal.h>
extern "C" void mango_pcc_algo_keep(const void *, size_t, void *, size_t) {
  signal(SIGSEGV, SIG_DFL);
  raise(SIGSEGV);
})"));
  CHECK_THAT(load().at(0).reason, Contains(kCrashed));
  CHECK(round() == 300'005);

  // A refused file changes nothing, and neither does one with another algorithm while this one
  // runs.
  build("int nothing;");
  CHECK_THAT(load().at(0).reason, Contains("no symbol"));
  CHECK(round() == 300'006);
  build(tuned(500'000, "", "other"));
  CHECK_THAT(load().at(0).reason, Contains("is other now, and tuned, which was loaded from it"));
  CHECK(round() == 300'007);
  REQUIRE(card.stop());
  CHECK(load().at(0).loaded == "other");
  Result<PccLoaded> all = card.load(directory);
  CHECK(card_names(*all).back() == "other");
  CHECK_FALSE(card.has_died());
}
