// rdma pcc new: the beginning of an algorithm, a directory with a plugin that works, what builds it
// and what tests it.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <utility>

#include "core/base/text.h"
#include "tools/mango-ctl/commands.h"
#include "tools/mango-ctl/include_directory.h"
#include "tools/mango-ctl/session.h"
#include "tools/mango-ctl/text_file.h"

namespace rocefs {
namespace {

// In the texts, @NAME@ is the algorithm, @HERE@ its directory, @INCLUDE@ and @LIBRARY@ the options
// for libmango's.
constexpr std::string_view kSource =
    R"(// @NAME@: half a window at a CNP, else a step more. See libmango(3).
#include <libmango.h>

#include <algorithm>
#include <iterator>

namespace {

// Parameters and state of a queue pair; each has a copy. Members that are registered can be set
// while the algorithm runs: `mango-ctl rdma pcc update-params mb_0 @NAME@ --param step=8192`.
struct State {
  unsigned int step;  // octets
  unsigned int cnps;  // so far
};

constexpr State kInitial{.step = 4096, .cnps = 0};

const mango_pcc_param_t kParameters[] = {REGISTER_UINT32_PARAM(State, step)};

void* init(mango_pcc_h pcc, unsigned int slot, size_t* size) {
  *size = sizeof(State);
  mango_pcc_params_register(pcc, slot, kParameters, std::size(kParameters));
  return new State(kInitial);
}

void destroy(void* state) {
  delete static_cast<State*>(state);
}

// Called for each queue pair once per interval, 60 us unless configured.
mango_pcc_result_t call(void* block, const mango_pcc_context_t* context) {
  auto& state = *static_cast<State*>(block);
  unsigned int window = context->current_window;
  if (context->cnp_delta > 0) {
    state.cnps += context->cnp_delta;
    mango_pcc_log(MANGO_LOG_LEVEL_DEBUG, "%u CNPs so far", state.cnps);
    window /= 2;
  } else {
    window += state.step;
  }
  mango_pcc_result_t result{};
  result.new_window = std::clamp(window, 1024u, 524288u);
  return result;
}

}  // namespace

extern "C" {
extern const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "@NAME@",
    .desc = "half a window at a CNP, else a step more",
    .init_params = init,
    .destroy_params = destroy,
    .algo_fn = nullptr,
    .algo_event_fn = call,
    .required_metrics = MANGO_PCC_METRIC_CNP,
};
}
)";

constexpr std::string_view kTest =
    R"(// A unit test of @NAME@, without a NIC: `make test`. See rocefs_pcc_test.h.
#include <rocefs_pcc_test.h>

#include <cstdio>
#include <cstdlib>

namespace {

unsigned long now_ns = 0;

// The window that the next call sets, 60 us after the one before.
unsigned int next_window(rocefs_pcc_test_t* test) {
  rocefs_pcc_decision_t decision;
  now_ns += 60000;
  if (rocefs_pcc_test_call(test, now_ns, &decision) != MANGO_STATUS_OK) std::exit(1);
  return decision.window;
}

void expect(unsigned int wanted, unsigned int got, const char* what) {
  if (wanted == got) return;
  std::printf("FAILED: %s: %u is wanted, got %u\n", what, wanted, got);
  std::exit(1);
}

}  // namespace

int main() {
  rocefs_pcc_test_t* test = rocefs_pcc_test_open(&mango_pcc_algo_plugin);
  if (!test) return 1;
  rocefs_pcc_test_window(test, 100000);
  rocefs_pcc_test_param_set(test, "step", "500");
  expect(100500, next_window(test), "a step more without a CNP");
  rocefs_pcc_test_cnps(test, 3);
  expect(50250, next_window(test), "half a window at CNPs");
  expect(50750, next_window(test), "CNPs count once");
  for (int i = 0; i < 100; ++i) {
    rocefs_pcc_test_cnps(test, 1);
    next_window(test);
  }
  rocefs_pcc_test_cnps(test, 1);
  expect(1024, next_window(test), "the least window");
  rocefs_pcc_test_close(test);
  std::printf("@NAME@: passed\n");
}
)";

constexpr std::string_view kMakefile =
    R"(# make: builds @NAME@.so. make test: runs @NAME@_test.cc, and simulates @NAME@.ini. make load: takes it to
# DEVICE of the mount in ROCEFS_MOUNT, also while it runs there.
CXX ?= c++
CXXFLAGS ?= -O2 -g -Wall -Wextra
DEVICE ?= mb_0
ROCEFS ?= rocefs
MANGO_CTL ?= mango-ctl

@NAME@.so: @NAME@.cc
	$(CXX) -std=c++20 $(CXXFLAGS) -shared -fPIC @INCLUDE@ -o $@ $<
@NAME@_test: @NAME@_test.cc @NAME@.cc
	$(CXX) -std=c++20 $(CXXFLAGS) @INCLUDE@ -o $@ $^ @LIBRARY@ -lmango
test: @NAME@.so @NAME@_test
	./@NAME@_test
	$(ROCEFS) sim @NAME@.ini
load: @NAME@.so
	there=$$(cat "$$ROCEFS_MOUNT/class/infiniband/$(DEVICE)/pcc/plugin_dir") && \
	  cp $< "$$there/$<.new" && mv "$$there/$<.new" "$$there/$<"
	$(MANGO_CTL) rdma pcc algo load $(DEVICE)
clean:
	rm -f @NAME@.so @NAME@_test
.PHONY: test load clean
)";

constexpr std::string_view kScenario =
    R"(# Eight hosts write to one over a single switch that marks packets: without congestion control, with
# aimd, and with @NAME@. `rocefs sim --out DIR @NAME@.ini` makes a report with plots.
[sim]
title = @NAME@: 8:1 incast on one switch
limit = 1s
[clock]
seed = 1
[topology]
kind = star
hosts = 9
rate = 100G
delay = 1us
[knobs]
kernel/debug/rocefs/fabric/sw_0/ecn/kmin = 50K
kernel/debug/rocefs/fabric/sw_0/ecn/kmax = 1000K
kernel/debug/rocefs/fabric/sw_0/ecn/pmax = 0.1
kernel/debug/rocefs/fabric/sw_0/ecn/enable = 1
[flows]
f{1..8} = write h{1..8} h0 size=64K count=200 window=1024
[sample]
interval = 50us
queue = kernel/debug/rocefs/fabric/sw_0/ports/1/queue/0/bytes scale=9.765625e-4
w{1..8} = kernel/debug/rocefs/traffic/f{1..8}/window scale=9.765625e-4 below=4294967295
[plot]
Queue before h0 (KiB) = queue
Windows (KiB) = w1 w2 w3 w4 w5 w6 w7 w8
[variant no_CC]
[variant aimd]
class/infiniband/h{1..8}/pcc/algo = aimd
class/infiniband/h{1..8}/pcc/state = start
[variant @NAME@]
class/infiniband/h{1..8}/pcc/plugin_dir = @HERE@
class/infiniband/h{1..8}/pcc/load = 1
class/infiniband/h{1..8}/pcc/algo = @NAME@
class/infiniband/h{1..8}/pcc/state = start
)";

// A path as a makefile's shell takes it.
std::string shell_word(const std::string& path) {
  return path.find(' ') == path.npos ? path : "'" + path + "'";
}

std::string filled(std::string_view text, const std::string& name, const std::string& here) {
  std::string include = include_directory();
  if (!include.empty()) include = "-I" + shell_word(include);
  std::string library = library_directory();
  if (!library.empty()) library = fmt::format("-L{0} -Wl,-rpath,{0}", shell_word(library));
  std::string out(text);
  for (const auto& [word, value] : {std::pair<std::string, const std::string&>{"@NAME@", name},
                                    {"@HERE@", here},
                                    {"@INCLUDE@", include},
                                    {"@LIBRARY@", library}}) {
    for (size_t at = 0; (at = out.find(word, at)) != out.npos; at += value.size()) {
      out.replace(at, word.size(), value);
    }
  }
  return out;
}

Result<void> write_file(const std::string& path, const std::string& text) {
  Result<Replacement> file = Replacement::of(path, 0644);
  if (!file) return file.error();
  if (Result<void> written = file->write(text); !written) return written;
  return file->commit();
}

// As the card has it.
bool names_an_algorithm(const std::string& name) {
  constexpr size_t kMaxName = 31;
  const bool allowed = name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == name.npos;
  return allowed && !name.empty() && name.size() <= kMaxName && name != "none";
}

// Built-in algorithms: the card takes no plugin of such a name.
constexpr std::string_view kBuiltIn[] = {"aimd", "dcqcn", "rttvegas"};

struct NewOptions {
  std::string name;
};

Result<void> make(Session& session, const std::string& name) {
  if (!names_an_algorithm(name)) {
    return errorf(EINVAL, "'{}': 1 to 31 of a-z, 0-9 and _ are wanted, and not none", name);
  }
  if (std::find(std::begin(kBuiltIn), std::end(kBuiltIn), name) != std::end(kBuiltIn)) {
    return errorf(EINVAL, "{}: the card has an algorithm of that name already", name);
  }
  std::error_code failed;
  const std::string here = std::filesystem::absolute(name, failed).string();
  if (failed) return errorf(failed.value(), "{}: {}", name, failed.message());
  if (::mkdir(here.c_str(), 0755) != 0) return errorf(errno, "{}: {}", here, std::strerror(errno));
  const std::pair<std::string, std::string_view> files[] = {{name + ".cc", kSource},
                                                            {name + "_test.cc", kTest},
                                                            {"Makefile", kMakefile},
                                                            {name + ".ini", kScenario}};
  for (const auto& [file, text] : files) {
    Result<void> written = write_file(here + "/" + file, filled(text, name, here));
    if (!written) return written;
    session.print(name + "/" + file + "\n");
  }
  session.add({{"name", name}, {"directory", here}});
  return {};
}

void new_algorithm(Session& session, const NewOptions& options) {
  if (Result<void> made = make(session, options.name); !made) session.fail(made.error());
}

}  // namespace

std::vector<Command> new_commands() {
  return {
      CommandOf<NewOptions>{
          .path = "rdma pcc new",
          .summary = "Begin an algorithm: a plugin that works, and what builds and tests it",
          .manual = "Makes the directory NAME with NAME.cc, NAME_test.cc, a unit test of it, a "
                    "Makefile, and "
                    "NAME.ini, a scenario of `rocefs sim`. `make test` builds the plugin, runs the "
                    "test and "
                    "simulates the scenario, without a mount; "
                    "`make load` takes it to a device, also while it runs there.",
          .examples = {"rdma pcc new my_algo"},
          .arguments = {{&NewOptions::name,
                         {.name = "name", .help = "the algorithm's, 1 to 31 of a-z, 0-9 and _"}}},
          .run = new_algorithm,
          .uses_tree = false},
  };
}

}  // namespace rocefs
