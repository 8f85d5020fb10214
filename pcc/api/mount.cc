#include "pcc/api/mount.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

namespace rocefs {
namespace {

bool has_rocefs(const std::string& root) {
  return ::access((root + "/kernel/debug/rocefs").c_str(), F_OK) == 0;
}

// Octal escapes of mountinfo: blank, tab, newline and backslash are written as \ooo.
std::string unescaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    bool escape = text[0] == '\\' && text.size() > 3;
    result += escape ? static_cast<char>((text[1] - '0') * 64 + (text[2] - '0') * 8 + text[3] - '0')
                     : text[0];
    text.remove_prefix(escape ? 4 : 1);
  }
  return result;
}

// Line format: 36 35 0:60 / /mount/point options - fuse.rocefs source options
std::string only_mount() {
  std::ifstream lines("/proc/self/mountinfo");
  std::vector<std::pair<std::string, std::string>> found;  // device and point
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string id, parent, device, root, point, word, type;
    words >> id >> parent >> device >> root >> point;
    while (words >> word && word != "-") {
    }
    words >> type;
    if (type != "fuse.rocefs" || root != "/") continue;
    point = unescaped(point);
    bool another_view = std::any_of(found.begin(), found.end(),
                                    [&](const auto& other) { return other.first == device; });
    if (!another_view && has_rocefs(point)) found.emplace_back(device, point);
  }
  return found.size() == 1 ? found[0].second : std::string();
}

}  // namespace

std::string find_mount() {
  const char* mount = std::getenv("ROCEFS_MOUNT");
  if (mount && *mount) return mount;
  const char* sysfs = std::getenv("SYSFS_PATH");
  if (sysfs && *sysfs && has_rocefs(sysfs)) return sysfs;
  if (has_rocefs("/sys")) return "/sys";
  return only_mount();
}

}  // namespace rocefs
