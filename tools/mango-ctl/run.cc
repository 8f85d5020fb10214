// rdma pcc apply, start and stop: the algorithm of a device, and its runs.
#include <cerrno>

#include "tools/mango-ctl/commands.h"
#include "tools/mango-ctl/pcc.h"

namespace rocefs {
namespace {

struct ApplyOptions {
  std::string device, algorithm;
};

// Stores nothing unless every device has the algorithm.
void apply_algorithm(Session& session, const ApplyOptions& options) {
  session.each_device(options.device, [&](const std::string& name) {
    if (options.algorithm == "none") return Result<void>();
    return must_be_loaded(session.tree(), name, options.algorithm);
  });
  if (session.failed()) return;
  session.each_device(options.device, [&](const std::string& name) {
    return session.tree().store(device_file(name, "pcc/algo"), options.algorithm);
  });
}

struct StartOptions {
  std::string device, num_threads, interval_us;
};

// Restores the options when the run does not start.
Result<void> start_one(Session& session, const std::string& name, const StartOptions& options) {
  const NicTree& tree = session.tree();
  Result<bool> active = pcc_is_active(tree, name);
  if (!active) return active.error();
  if (*active) return Error{EBUSY, "PCC is active already"};
  std::vector<Assignment> wanted, before;
  auto want = [&](const char* knob, const std::string& value) -> Result<void> {
    if (value.empty()) return {};
    std::string path = device_file(name, knob);
    Result<std::string> old = tree.value(path);
    if (!old) return old.error();
    wanted.push_back({path, value});
    before.push_back({path, *old});
    return {};
  };
  Result<void> done = want("pcc/num_threads", options.num_threads);
  if (done) done = want("pcc/interval_us", options.interval_us);
  if (done && !wanted.empty()) done = tree.store_together(wanted);
  if (!done) return done;
  done = tree.store(device_file(name, "pcc/state"), "start");
  if (!done && !before.empty()) (void)!tree.store_together(before);
  // The file's EINVAL is that of any word which it does not take.
  if (!done && done.error().code == EINVAL && applied_to(tree, name) == "none") {
    return wrong_state(done.error().reason);
  }
  return done;
}

void start_pcc(Session& session, const StartOptions& options) {
  session.each_device(options.device,
                      [&](const std::string& name) { return start_one(session, name, options); });
}

void stop_pcc(Session& session, const DeviceOptions& options) {
  session.each_device(options.device, [&](const std::string& name) -> Result<void> {
    DeviceReader files(session.tree(), name);
    const PccOwner owner = owner_of(files);
    if (!owner.text.empty()) return wrong_state("claimed by " + owner.text);
    Result<bool> active = pcc_is_active(session.tree(), name);
    if (active && !*active) session.notice(name + ": PCC is not active");
    return session.tree().store(device_file(name, "pcc/state"), "stop");
  });
}

}  // namespace

std::vector<Command> run_commands() {
  return {
      CommandOf<ApplyOptions>{
          .path = "rdma pcc apply",
          .summary = "Choose the algorithm, also while PCC is active",
          .manual =
              "With `all`, nothing changes unless each device has the algorithm. `none` takes "
              "the choice back; PCC must not be active.",
          .examples = {"rdma pcc apply mb_0 aimd", "rdma pcc apply all dcqcn",
                       "rdma pcc apply mb_0 none"},
          .arguments = {device_or_all<ApplyOptions>(), algorithm_argument<ApplyOptions>()},
          .run = apply_algorithm},
      CommandOf<StartOptions>{
          .path = "rdma pcc start",
          .summary = "Start PCC",
          .manual = "The applied algorithm sets the windows, and CFR is off. An option that is not "
                    "given keeps its last value; at first these are 1 and 60. A start that fails "
                    "changes nothing.",
          .examples = {"rdma pcc start mb_0", "rdma pcc start all",
                       "rdma pcc start mb_0 --num-threads 4"},
          .arguments = {device_or_all<StartOptions>(),
                        {&StartOptions::num_threads,
                         {.name = "--num-threads",
                          .value = "N",
                          .help = "threads that poll queue pairs, 1 to 64",
                          .check = want_number}},
                        {&StartOptions::interval_us,
                         {.name = "--interval-us",
                          .value = "N",
                          .help = "microseconds between two calls for a queue pair",
                          .check = want_number}}},
          .run = start_pcc},
      CommandOf<DeviceOptions>{
          .path = "rdma pcc stop",
          .summary = "Stop PCC",
          .manual =
              "CFR is again as before the start: it sets the windows, or they are without limit. A "
              "program that has claimed the windows is not stopped.",
          .examples = {"rdma pcc stop mb_0", "rdma pcc stop all"},
          .arguments = {device_or_all<DeviceOptions>()},
          .run = stop_pcc},
  };
}

}  // namespace rocefs
