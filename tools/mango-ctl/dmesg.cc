// dmesg: what the emulated kernel and its driver say.
#include <poll.h>
#include <unistd.h>

#include <cstdlib>

#include "core/base/text.h"
#include "tools/mango-ctl/commands.h"

namespace rocefs {
namespace {

// "[    1.234567] TEXT"
Json to_json(std::string_view line) {
  size_t end = line.find("] ");
  if (!line.starts_with('[') || end == line.npos) return {{"time", nullptr}, {"text", line}};
  double seconds = std::strtod(std::string(line.substr(1, end - 1)).c_str(), nullptr);
  return {{"time", seconds}, {"text", line.substr(end + 2)}};
}

// What `now` has behind `before`; old lines may have left at its beginning.
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
    // A reader that has gone is an event of its own.
    pollfd reader{STDOUT_FILENO, 0, 0};
    if (::poll(&reader, 1, kPauseMs) > 0) return;
  }
}

void show(Session& session, bool wait) {
  const std::string path = "kernel/debug/rocefs/dmesg";
  if (wait) return follow(session, path);
  Result<std::string> text = session.tree().read(path);
  if (!text) return session.fail(text.error());
  session.print(*text);
  if (!session.json()) return;
  for (std::string_view line : split(*text, "\n")) session.add(to_json(line));
}

}  // namespace

void add_dmesg_command(CommandLine& line) {
  auto wait = line.options<bool>(false);
  CLI::App& command =
      line.command(line.root(), "dmesg", "the log of the emulated machine",
                   "dmesg | grep PCC\ndmesg -w", [=](Session& session) { show(session, *wait); });
  command.add_flag("-w,--follow", *wait, "wait for more; with --json an object per line");
}

}  // namespace rocefs
