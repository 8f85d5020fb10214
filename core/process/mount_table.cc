#include "core/process/mount_table.h"

#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>

#include "core/process/bounded_look.h"

namespace rocefs {
namespace {

// Decodes blanks, tabs, newlines and backslashes, which mountinfo writes as \ooo.
std::string unescaped(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      result += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                  (text[i + 3] - '0'));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

// Example: 36 35 98:0 /root /mount/point options - type source options
std::optional<Mount> parse(const std::string& line) {
  std::istringstream words(line);
  int id = 0;
  std::string parent, number, root, point, word, type, source;
  words >> id >> parent >> number >> root >> point;
  bool shared = false;
  while (words >> word && word != "-") shared |= word.starts_with("shared:");
  words >> type >> source;
  unsigned high = 0, low = 0;
  if (std::sscanf(number.c_str(), "%u:%u", &high, &low) != 2) return std::nullopt;
  return Mount{id, makedev(high, low), unescaped(root), unescaped(point), type, source, shared};
}

std::vector<Mount> parse_table(std::istream& lines) {
  std::vector<Mount> table;
  for (std::string line; std::getline(lines, line);) {
    if (std::optional<Mount> mount = parse(line)) table.push_back(std::move(*mount));
  }
  return table;
}

// Returns 0 if the mount at this path is this one and its daemon answers the caller.
int code_of(const Look& look, const Mount& mount) {
  if (look.code != 0) return look.code;
  return look.device == mount.device ? 0 : ENOENT;
}

Result<std::string> rocefs_at(const std::string& wanted) {
  std::string trimmed = wanted;
  while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
  std::unique_ptr<char, decltype(&std::free)> full(::realpath(trimmed.c_str(), nullptr), std::free);
  if (!full) return errorf(errno, "{}: {}", wanted, why_not(errno));
  std::vector<Mount> table = mount_table();
  auto top = std::find_if(table.rbegin(), table.rend(),
                          [&](const Mount& mount) { return mount.point == full.get(); });
  if (top == table.rend() || !top->is_rocefs() || top->root != "/") {
    return errorf(ENOENT, "{}: no rocefs is mounted there", wanted);
  }
  if (int code = code_of(bounded_look(top->point), *top))
    return errorf(code, "{}: {}", wanted, why_not(code));
  return top->point;
}

}  // namespace

std::string why_not(int code) {
  if (code == ENOTCONN) return "its rocefs has ended";
  if (code == ETIMEDOUT) return "its rocefs does not answer; umount -f removes it";
  if (code == EACCES) return "another user's, mounted without -o allow_other";
  if (could_not_look(code)) return "cannot start a process to check it (ulimit -u, ulimit -n)";
  return std::strerror(code);
}

std::vector<Mount> mount_table() {
  std::ifstream lines("/proc/self/mountinfo");
  return parse_table(lines);
}

Result<std::vector<Mount>> read_mount_table(int mountinfo) {
  std::string text;
  std::array<char, 4096> part;
  ssize_t got = 0;
  do {
    text.append(part.data(), static_cast<size_t>(got));
    got = ::pread(mountinfo, part.data(), part.size(), static_cast<off_t>(text.size()));
  } while (got > 0);
  if (got < 0) return errorf(errno, "the mount table: {}", std::strerror(errno));
  std::istringstream lines(text);
  return parse_table(lines);
}

Result<std::string> find_rocefs(const std::string& wanted, std::string& left_out) {
  if (!wanted.empty()) return rocefs_at(wanted);
  std::vector<Mount> candidates, live;
  std::vector<std::string> points;
  for (Mount& mount : mount_table()) {
    if (!mount.is_rocefs() || mount.root != "/") continue;
    points.push_back(mount.point);
    candidates.push_back(std::move(mount));
  }
  std::vector<Look> looks = bounded_look(points);
  std::string others;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Mount& mount = candidates[i];
    auto same = [&](const Mount& other) { return other.device == mount.device; };
    if (std::any_of(live.begin(), live.end(), same)) continue;  // another view of one
    int code = code_of(looks[i], mount);
    if (could_not_look(code)) return errorf(code, "{}: {}", mount.point, why_not(code));
    if (code == 0) live.push_back(mount);
    if (code == ETIMEDOUT) left_out += fmt::format("{}: {}\n", mount.point, why_not(code));
    if (code == ENOTCONN || code == EACCES || code == ETIMEDOUT) {
      others += fmt::format(" ({}: {})", mount.point, why_not(code));
    }
  }
  if (live.empty()) {
    left_out.clear();
    return errorf(ENOENT, "no rocefs is mounted{}", others);
  }
  if (live.size() == 1) return live[0].point;
  std::string all;
  for (const Mount& mount : live) all += " " + mount.point;
  return errorf(EINVAL, "several rocefs are mounted:{}: ROCEFS_MOUNT names one", all);
}

Result<std::string> chosen_mount(const std::string& option) {
  const char* named = std::getenv("ROCEFS_MOUNT");
  std::string left_out;
  Result<std::string> mount_point =
      find_rocefs(!option.empty() || !named ? option : named, left_out);
  std::fputs(left_out.c_str(), stderr);
  return mount_point;
}

}  // namespace rocefs
