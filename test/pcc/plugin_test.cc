// Plugins: an author's, the tutorial's, and refused ones.
#include "pcc/run/plugin.h"
#include "pcc/algorithms/built_ins.h"

#include <link.h>

#include <catch2/catch.hpp>
#include <cerrno>

#include "test/here.h"
#include "test/pcc/compiled.h"
#include "test/pcc/fake_session.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

Result<std::unique_ptr<PccPlugin>> load_plugin(PccHandle& handle, const std::string& file) {
  Result<LibraryCopy> library = LibraryCopy::of(file);
  if (!library) return library.error();
  return PccPlugin::load(handle, *library);
}

// Source of an algorithm as its author writes it.
std::string authors() {
  std::ifstream file("test/pcc/author/my_algo.cc");
  return {std::istreambuf_iterator<char>(file), {}};
}

// Source of the vendor's tutorial, steps 2.1 to 2.4 without the prose. The text is not part of the
// checkout: empty unless ROCEFS_VENDOR_TEXTS names its directory.
std::string tutorial() {
  const char* texts = std::getenv("ROCEFS_VENDOR_TEXTS");
  if (!texts) return {};
  std::ifstream file(std::string(texts) + "/mango-roce-ai-advanced-features.txt");
  std::string line, source;
  bool inside = false;
  while (std::getline(file, line)) {
    if (line == "#include <libmango.h>") inside = true;
    if (line.starts_with("3. Building and Deploying")) inside = false;
    if (inside && !line.starts_with("Step 2.")) source += line + "\n";
  }
  return source;
}

// Source of a plugin with these members, and code before them.
std::string plugin(const std::string& before, const std::string& members) {
  return "#include <libmango.h>\n" + before +
         "\nextern \"C\" const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {" + members + "};";
}

// Number of loaded libraries.
int libraries() {
  int count = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info*, size_t, void* counted) { return ++*static_cast<int*>(counted), 0; },
      &count);
  return count;
}

const std::string kAlgorithm = "static void run(void*) {}";

// Response to CNPs as in the tutorial: half a window for one, 100 octets more without.
void compiles_and_steers(const std::string& source, const std::string& compiler,
                         const std::string& description) {
  INFO(compiler);
  PluginFiles files;
  std::string file = files.compile("my_algo", source, compiler);
  FakeHandle fake;
  PccController& controller = fake.handle().controller();
  add_built_ins(controller);
  auto loaded = load_plugin(fake.handle(), file);
  REQUIRE(loaded);
  CHECK((*loaded)->name() == "my_custom_algo");
  unsigned slot = (*loaded)->slot();
  CHECK(slot == kBuiltIns);
  CHECK(controller.algorithm(slot)->desc == description);
  CHECK(controller.value(slot, "alpha").value() == "100");
  CHECK(controller.value(slot, "beta").value() == "0.5");
  PccPages& pages = fake.state.pages;
  pages.activate(17);
  REQUIRE(controller.apply(slot) == MANGO_STATUS_OK);
  REQUIRE(controller.begin(pages.signals.get(), pages.control.get(), 1) == MANGO_STATUS_OK);
  TimeNs now = controller.poll(0, 0);
  now = controller.poll(0, now);
  CHECK(pages.window(17) == 0x80000 + 100);
  pages.cnps(17, 1);
  now = controller.poll(0, now);
  CHECK(pages.window(17) == (0x80000 + 100) / 2);
  CHECK((*loaded)->remove() == MANGO_STATUS_BUSY);
  controller.end();
  CHECK((*loaded)->remove() == MANGO_STATUS_OK);
  CHECK(!controller.find("my_custom_algo"));
}

}  // namespace

TEST_CASE("plugin: an author's file compiles unchanged, loads and sets windows") {
  std::vector<std::string> compilers = {PluginFiles::default_compiler()};
  // Not below an emulator: it compiles for the machine there.
  if (kernel_is_ours() && PluginFiles::has("clang++-14")) compilers.push_back("clang++-14");
  for (const std::string& compiler : compilers) {
    for (const char* standard : {" -std=c++17", " -std=c++20"}) {
      compiles_and_steers(authors(), compiler + standard,
                          "Half a window at a CNP, else a little more");
      if (std::string source = tutorial(); !source.empty()) {
        compiles_and_steers(source, compiler + standard, "A simple custom AIMD algorithm tutorial");
      }
    }
  }
}

TEST_CASE("plugin: an invalid plugin is refused with the reason") {
  PluginFiles files;
  FakeHandle fake;
  add_built_ins(fake.handle().controller());
  struct Row {
    std::string source, reason;
    int code = ENOEXEC;
  };
  std::vector<Row> rows = {
      {"int nothing;", "it has no symbol mango_pcc_algo_plugin"},
      {"extern \"C\" const char mango_pcc_algo_plugin[8] = {};",
       "mango_pcc_algo_plugin has 8 octets, where libmango.h has"},
      {"#define mango_plugin_abi not_its_own\n" + plugin("", R"(.name = "later")") +
           "\n#undef mango_plugin_abi\nextern \"C\" MANGO_API const uint32_t mango_plugin_abi = 7;",
       "its libmango.h was of plugin interface 7, this is 1"},
      {plugin(kAlgorithm, ".algo_fn = run"), "it has no name"},
      {plugin(kAlgorithm, R"(.name = "", .algo_fn = run)"), "its name '' is not"},
      {plugin(kAlgorithm, R"(.name = "none", .algo_fn = run)"), "its name 'none'"},
      {plugin(kAlgorithm, R"(.name = "a23456789012345678901234567890ab", .algo_fn = run)"),
       "its name 'a23456789012345678901234567890a' is not 1 to 31"},
      {plugin(kAlgorithm, R"(.name = "aimd", .algo_fn = run)"), "the name aimd is in use", EEXIST},
      {plugin("", R"(.name = "neither")"), "it has neither algo_fn nor algo_event_fn"},
      {plugin("static mango_pcc_result_t run(void*, const mango_pcc_context_t*) { return {}; }",
              R"(.name = "metric", .algo_event_fn = run, .required_metrics = 8)"),
       "there is no such metric as required_metrics 0x8"},
      {plugin(kAlgorithm + "static void* init(mango_pcc_h, unsigned, size_t* size) {"
                           "  *size = 4; return nullptr; }",
              R"(.name = "fails", .init_params = init, .algo_fn = run)"),
       "its init_params failed"},
      {plugin(kAlgorithm + "static void* init(mango_pcc_h, unsigned, size_t*) { throw 1; }",
              R"(.name = "throws", .init_params = init, .algo_fn = run)"),
       "its init_params threw an exception"},
      {plugin(kAlgorithm + "static char block[70000];"
                           "static void* init(mango_pcc_h, unsigned, size_t* size) {"
                           "  *size = sizeof block; return block; }",
              R"(.name = "large", .init_params = init, .algo_fn = run)"),
       "its parameters take 70000 octets, and may take 65536"},
      {plugin(kAlgorithm + "static int block;"
                           "static void* init(mango_pcc_h pcc, unsigned slot, size_t* size) {"
                           "  mango_pcc_param_register(pcc, slot, \"p\","
                           "                           MANGO_PCC_PARAM_TYPE_DOUBLE, 0);"
                           "  *size = sizeof block; return &block; }",
              R"(.name = "outside", .init_params = init, .algo_fn = run)"),
       "parameter p is not inside the 4 octets of init_params"},
      {plugin("void missing(); static void run(void*) { missing(); }",
              R"(.name = "unresolved", .algo_fn = run)"),
       "undefined symbol"},
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    INFO(rows[i].source);
    std::string file = files.compile("p" + std::to_string(i), rows[i].source);
    auto loaded = load_plugin(fake.handle(), file);
    REQUIRE(!loaded);
    CHECK_THAT(loaded.error().reason, Catch::Contains(rows[i].reason));
    CHECK(loaded.error().code == rows[i].code);
  }
  for (const std::string& text : {std::string("no library"), std::string()}) {
    auto loaded = load_plugin(fake.handle(), files.write("text.so", text));
    REQUIRE(!loaded);
    CHECK(loaded.error().code == ENOEXEC);
    CHECK_THAT(loaded.error().reason, Catch::StartsWith(files.path("text.so: ")));
  }
  // As a compiler for another machine makes it: the machine in the ELF header.
  std::string header(64, '\0');
  std::ifstream(files.path("p0.so")).read(header.data(), 64);
#ifdef __x86_64__
  constexpr uint8_t kOther = EM_AARCH64;
  const std::string machines = "built for AArch64, where x86-64 is wanted";
#else
  constexpr uint8_t kOther = EM_X86_64;
  const std::string machines = "built for x86-64, where AArch64 is wanted";
#endif
  header[18] = static_cast<char>(kOther);
  header[19] = 0;
  CHECK(load_plugin(fake.handle(), files.write("other.so", header)).error().reason ==
        files.path("other.so: " + machines));
  CHECK(load_plugin(fake.handle(), files.path("gone.so")).error().reason ==
        files.path("gone.so: No such file or directory"));
  std::filesystem::create_directory(files.path("directory.so"));
  CHECK(load_plugin(fake.handle(), files.path("directory.so")).error().reason ==
        files.path("directory.so: not a regular file"));
  CHECK(fake.handle().controller().free_slot() == kBuiltIns);
}

TEST_CASE("plugin: one from before plugins had a number loads") {
  PluginFiles files;
  FakeHandle fake;
  std::string file =
      files.compile("early", "#define mango_plugin_abi unknown\n" +
                                 plugin(kAlgorithm, R"(.name = "early", .algo_fn = run)"));
  CHECK(load_plugin(fake.handle(), file));
}

TEST_CASE("plugin: the block of init_params is destroyed once, and log lines are passed on") {
  PluginFiles files;
  FakeHandle fake;
  int destroyed = 0, before = libraries();
  ::setenv("ROCEFS_TEST_DESTROYED", std::to_string(reinterpret_cast<uintptr_t>(&destroyed)).c_str(),
           1);
  std::string file = files.compile("counts", plugin(R"(
      #include <stdlib.h>
      struct Block { int* destroyed; };
      static void nothing(void*) {}
      static int* destroyed() {
        return reinterpret_cast<int*>(strtoull(getenv("ROCEFS_TEST_DESTROYED"), nullptr, 10));
      }
      static void* init(mango_pcc_h pcc, unsigned slot, size_t* size) {
        static Block block = {destroyed()};
        mango_pcc_log(MANGO_LOG_LEVEL_INFO, "init of slot %u", slot);
        if (mango_pcc_param_register(pcc, 9, "x", MANGO_PCC_PARAM_TYPE_BOOL, 0) !=
            MANGO_STATUS_NOT_FOUND) return nullptr;
        if (mango_pcc_param_register(pcc, 1, "x", MANGO_PCC_PARAM_TYPE_BOOL, 0) !=
            MANGO_STATUS_NOT_FOUND) return nullptr;
        const mango_status_e others[] = {
            mango_pcc_ctrl_unreg_algo(pcc, 1), mango_pcc_ctrl_reg_algo(pcc, 5, nothing, nullptr, 0),
            mango_pcc_ctrl_apply_algo(pcc, 1, nullptr, 0), mango_pcc_ctrl_run(pcc, 1),
            mango_pcc_ctrl_stop(pcc), mango_pcc_destroy(pcc)};
        for (mango_status_e status : others)
          if (status != MANGO_STATUS_BAD_STATE) return nullptr;
        *size = sizeof block;
        return &block;
      }
      static void destroy(void* block) { ++*static_cast<Block*>(block)->destroyed; }
      static mango_pcc_result_t run(void*, const mango_pcc_context_t* ctx) {
        mango_pcc_result_t result = {};
        result.new_window = ctx->cnp_delta + 5000;
        return result;
      }
      static void legacy(void*) {})",
                                                    R"(.name = "counts", .desc = nullptr,
      .init_params = init, .destroy_params = destroy, .algo_fn = legacy, .algo_event_fn = run,
      .required_metrics = MANGO_PCC_METRIC_CNP)"));
  auto loaded = load_plugin(fake.handle(), file);
  REQUIRE(loaded);
  CHECK(fake.state.logged == std::vector<std::string>{"init of slot 0"});
  // Second load of the file: the name is in use.
  auto again = load_plugin(fake.handle(), file);
  REQUIRE(!again);
  CHECK(again.error().code == EEXIST);
  // Event-style function: takes precedence.
  PccPages& pages = fake.state.pages;
  PccController& controller = fake.handle().controller();
  pages.activate(17);
  REQUIRE(controller.begin(pages.signals.get(), pages.control.get(), 1) == MANGO_STATUS_OK);
  TimeNs now = controller.poll(0, 0);
  pages.cnps(17, 3);
  controller.poll(0, now);
  CHECK(pages.window(17) == 5003);
  controller.end();
  CHECK(destroyed == 0);
  CHECK(libraries() == before + 1);
  loaded = Error{ECANCELED, "unloaded"};
  CHECK(destroyed == 1);
  CHECK(!controller.find("counts"));
  CHECK(libraries() == before);
  ::unsetenv("ROCEFS_TEST_DESTROYED");
}

TEST_CASE("plugin: a rebuilt plugin is loaded anew, even if the old one stays mapped") {
  PluginFiles files;
  FakeHandle fake;
  // Static objects of inline functions are unique in the process (STB_GNU_UNIQUE) and keep the
  // library loaded.
  for (const std::string stays : {"", "inline int& kept() { static int value; return value; }"}) {
    for (int round = 0; round < 3; ++round) {
      std::string name = "round_" + std::to_string(round);
      std::string run = stays.empty() ? kAlgorithm : "static void run(void*) { ++kept(); }";
      std::string file =
          files.compile("anew", plugin(stays + run, ".name = \"" + name + "\", .algo_fn = run"));
      auto loaded = load_plugin(fake.handle(), file);
      REQUIRE(loaded);
      CHECK((*loaded)->name() == name);
      CHECK((*loaded)->file() == file);
    }
  }
}

TEST_CASE("plugin: a loaded plugin survives the truncation of its file") {
  PluginFiles files;
  FakeHandle fake;
  PccController& controller = fake.handle().controller();
  std::string file =
      files.compile("fixed", plugin("static void run(void*) { mango_pcc_window_update(4096); }",
                                    R"(.name = "fixed", .algo_fn = run)"));
  auto loaded = load_plugin(fake.handle(), file);
  REQUIRE(loaded);
  std::filesystem::resize_file(file, 0);
  PccPages& pages = fake.state.pages;
  pages.activate(17);
  REQUIRE(controller.begin(pages.signals.get(), pages.control.get(), 1) == MANGO_STATUS_OK);
  controller.poll(0, controller.poll(0, 0));
  CHECK(pages.window(17) == 4096);
  controller.end();
}

TEST_CASE("plugin: a plugin is refused when all sixteen slots are taken") {
  PluginFiles files;
  FakeHandle fake;
  std::string file = files.compile("one", plugin(kAlgorithm, R"(.name = "one", .algo_fn = run)"));
  std::function<void(PccScript&)> nothing = [](PccScript&) {};
  for (unsigned slot = 0; slot < MANGO_PCC_MAX_SLOTS; ++slot) {
    REQUIRE(fake.handle().controller().add(slot, scripted("", nothing)) == MANGO_STATUS_OK);
  }
  auto loaded = load_plugin(fake.handle(), file);
  REQUIRE(!loaded);
  CHECK(loaded.error().code == ENOSPC);
}

TEST_CASE("plugin: a name is one word that breaks no path, command line or CSV") {
  for (const char* good : {"HPCC", "my-algo", "a.b", "x+1", "a23456789012345678901234567890a"}) {
    CAPTURE(good);
    CHECK(valid_algorithm_name(good));
  }
  for (const char* bad :
       {"", ".", "..", "none", "all", "-f", "a/b", "a=b", "a b", "a\tb", "a,b", "a*", "a?", "a'b",
        "a\"b", "a\\b", "\xc3\xa9", "a23456789012345678901234567890ab"}) {
    CAPTURE(bad);
    CHECK(!valid_algorithm_name(bad));
  }
}
