// dmesg: the log of the emulated kernel and its driver.
#include <poll.h>
#include <unistd.h>

#include <cstdlib>

#include "core/base/text.h"
#include "tools/mango-ctl/commands.h"

namespace rocefs {
namespace {

// Parses "[    1.234567] TEXT".
Json to_json(std::string_view line) {
  size_t end = line.find("] ");
  if (!line.starts_with('[') || end == line.npos) return {{"time", nullptr}, {"text", line}};
  double seconds = std::strtod(std::string(line.substr(1, end - 1)).c_str(), nullptr);
  return {{"time", seconds}, {"text", line.substr(end + 2)}};
}

// Part of `now` behind `before`, whose first lines may have left the log.
std::string_view news(std::string_view before, std::string_view now) {
  while (!before.empty() && !now.starts_with(before)) {
    before.remove_prefix(std::min(before.find('\n'), before.size() - 1) + 1);
  }
  return now.substr(before.size());
}

std::string shown(const Session& session, std::string_view text) {
  if (!session.json()) return std::string(text);
  std::string lines;
  for (std::string_view line : split(text, "\n")) lines += one_line(to_json(line)) + "\n";
  return lines;
}

void follow(Session& session, const std::string& path) {
  constexpr int kPauseMs = 200;
  std::string before;
  for (;;) {
    Result<std::string> now = session.tree().read(path);
    if (!now) return session.fail(now.error());
    std::string_view fresh = news(before, *now);
    if (!fresh.empty() && !session.stream(shown(session, fresh))) return;
    before = std::move(*now);
    // POLLERR or POLLHUP: the reader has gone.
    pollfd reader{STDOUT_FILENO, 0, 0};
    if (::poll(&reader, 1, kPauseMs) > 0) return;
  }
}

struct DmesgOptions {
  bool follow = false;
};

void show_dmesg(Session& session, const DmesgOptions& options) {
  const std::string path = "kernel/debug/rocefs/dmesg";
  if (options.follow) return follow(session, path);
  Result<std::string> text = session.tree().read(path);
  if (!text) return session.fail(text.error());
  session.print(*text);
  if (!session.json()) return;
  for (std::string_view line : split(*text, "\n")) session.add(to_json(line));
}

}  // namespace

std::vector<Command> dmesg_commands() {
  return {
      CommandOf<DmesgOptions>{
          .path = "dmesg",
          .summary = "Show the kernel log of the emulated machine",
          .examples = {"dmesg | grep PCC", "dmesg -w"},
          .arguments = {{&DmesgOptions::follow,
                         {.name = "-w,--follow",
                          .help = "wait for more lines; with --json an object for each"}}},
          .run = show_dmesg},
  };
}

}  // namespace rocefs
