// rdma pcc replay: mango-pccd, the program beside this one, feeds a recording into an algorithm.
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tools/mango-ctl/child.h"
#include "tools/mango-ctl/commands.h"
#include "tools/mango-ctl/session.h"

namespace rocefs {
namespace {

struct ReplayOptions {
  std::string trace, algorithm, device, seed, csv;
  std::vector<std::string> parameters;
};

// Stands beside this program, in the build tree and where it is installed; else it is in $PATH.
std::string card_program() {
  std::error_code failed;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  std::filesystem::path beside = program.parent_path() / "mango-pccd";
  return std::filesystem::exists(beside, failed) ? beside.string() : "mango-pccd";
}

void replay_trace(Session& session, const ReplayOptions& options) {
  std::vector<std::string> words = {card_program(), "replay"};
  // No option, even if it begins with a dash.
  words.push_back(std::filesystem::absolute(options.trace).string());
  for (auto [name, value] : {std::pair("--algo", &options.algorithm),
                             {"--device", &options.device},
                             {"--seed", &options.seed},
                             {"--csv", &options.csv}}) {
    if (value->empty()) continue;
    words.insert(words.end(), {name, *value});
  }
  for (const std::string& parameter : options.parameters) {
    words.insert(words.end(), {"--param", parameter});
  }
  session.streams();
  Result<int> status = run_program(words, "", ChildOutput::kStdout);
  if (!status) return session.fail(status.error());
  constexpr int kSignalled = 128;
  if (*status <= kUsage) return session.end_with(static_cast<ExitStatus>(*status));
  if (const char* name = *status > kSignalled ? ::sigabbrev_np(*status - kSignalled) : nullptr) {
    return session.fail(errorf(EIO, "{}: it died of SIG{}", options.algorithm, name));
  }
  session.fail(errorf(EIO, "{}: it ended the process with status {}", options.algorithm, *status));
}

}  // namespace

std::vector<Command> replay_commands() {
  return {
      CommandOf<ReplayOptions>{
          .path = "rdma pcc replay",
          .summary = "Feed recorded calls into an algorithm, and compare its decisions",
          .manual =
              "A recording comes from `rdma pcc trace --calls`. The algorithm sees what was "
              "recorded, call by call, and its window and rate after each are compared with those "
              "in the recording; those that differ are printed. No mount is needed. A queue pair "
              "whose first call is not in the recording is left out. Parameters that were set "
              "while "
              "it was recorded are not in it. Exit status: 0 all are the same, 1 some differ, 2 "
              "the "
              "recording or the algorithm cannot be read.",
          .examples = {"rdma pcc replay calls.csv --algo ./my_algo.so",
                       "rdma pcc replay calls.csv --algo aimd --param alpha=400 --csv now.csv"},
          .arguments = {{&ReplayOptions::trace,
                         {.name = "trace", .help = "recorded calls", .offer = Offer::kFiles}},
                        {&ReplayOptions::algorithm,
                         {.name = "--algo",
                          .value = "FILE.so|NAME",
                          .help = "a plugin, or a built-in algorithm",
                          .offer = Offer::kFiles,
                          .alternative = true}},
                        {&ReplayOptions::parameters,
                         {.name = "--param",
                          .value = "NAME=VALUE",
                          .help = "a parameter's value from the first call on"}},
                        {&ReplayOptions::seed,
                         {.name = "--seed",
                          .value = "N",
                          .help = "the mount's, if the algorithm draws random numbers"}},
                        {&ReplayOptions::device,
                         {.name = "--device",
                          .value = "NAME",
                          .help = "the recorded one, if the algorithm draws random numbers"}},
                        {&ReplayOptions::csv,
                         {.name = "--csv",
                          .value = "FILE",
                          .help = "file for all decisions",
                          .offer = Offer::kFiles}}},
          .run = replay_trace,
          .uses_tree = false},
  };
}

}  // namespace rocefs
