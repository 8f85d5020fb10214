#include "tools/rocefs/netlink/rdma_view.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string_view>

#include "core/process/open_below.h"

namespace rocefs {
namespace {

constexpr char kClass[] = "class/infiniband";

// Number at the end of a name: 3 of uverbs3.
uint32_t number_of(std::string_view name) {
  size_t begin = name.find_last_not_of("0123456789") + 1;
  return static_cast<uint32_t>(std::strtoul(std::string(name.substr(begin)).c_str(), nullptr, 10));
}

}  // namespace

uint64_t RdmaView::Resource::number(std::string_view key) const {
  return std::strtoull(text(key).c_str(), nullptr, 0);
}

const std::string& RdmaView::Resource::text(std::string_view key) const {
  static const std::string kNone;
  auto it = values.find(key);
  return it == values.end() ? kNone : it->second;
}

std::vector<RdmaView::Device> RdmaView::devices() const {
  std::vector<Device> devices;
  for (const std::string& name : names(kClass)) {
    std::string at = std::string(kClass) + "/" + name;
    std::vector<std::string> nodes = names(at + "/device/infiniband_verbs");
    if (nodes.empty()) continue;  // unbound, or just about to leave
    auto ports = static_cast<uint32_t>(names(at + "/ports").size());
    devices.push_back({name, number_of(nodes.front()), ports});
  }
  std::sort(devices.begin(), devices.end(),
            [](const Device& a, const Device& b) { return a.index < b.index; });
  return devices;
}

// Does not wait for a FIFO or a device that somebody has put there.
Fd RdmaView::open_file(const std::string& path, int flags) const {
  return open_below(root_, "sys/" + path, O_RDONLY | O_NONBLOCK | O_NOCTTY | flags,
                    RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

std::string RdmaView::text(const std::string& path) const {
  Fd file = open_file(path, 0);
  std::string text;
  struct stat status;
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return text;
  char part[4096];
  ssize_t got;
  while ((got = ::read(file.get(), part, sizeof part)) > 0) text.append(part, got);
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::vector<std::string> RdmaView::names(const std::string& path) const {
  std::vector<std::string> names;
  auto close = [](DIR* directory) { ::closedir(directory); };
  Fd opened = open_file(path, O_DIRECTORY);
  if (!opened) return names;
  std::unique_ptr<DIR, decltype(close)> directory(::fdopendir(opened.release()), close);
  while (const dirent* entry = directory ? ::readdir(directory.get()) : nullptr) {
    if (entry->d_name[0] != '.') names.push_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<RdmaView::Resource> RdmaView::resources(const std::string& device) const {
  std::vector<Resource> resources;
  std::istringstream lines(text("kernel/debug/rocefs/resources"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    Resource resource;
    words >> name >> resource.kind;
    if (name != device) continue;
    for (std::string word; words >> word;) {
      size_t equals = word.find('=');
      if (equals != word.npos) resource.values[word.substr(0, equals)] = word.substr(equals + 1);
    }
    resources.push_back(std::move(resource));
  }
  return resources;
}

}  // namespace rocefs
