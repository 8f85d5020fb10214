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
constexpr size_t kLongestText = 4096, kMostNames = 4096, kMostResources = size_t{16} << 20;

// Number at the end of a name: 3 of uverbs3.
uint32_t number_of(std::string_view name) {
  size_t begin = name.find_last_not_of("0123456789") + 1;
  return static_cast<uint32_t>(std::strtoul(std::string(name.substr(begin)).c_str(), nullptr, 10));
}

// False if `take` has enough. Passes over a line that is too long.
bool take_line(const std::string& line, const RdmaView::Wants& wants, const RdmaView::Take& take) {
  if (line.size() > kLongestText) return true;
  std::istringstream words(line);
  std::string device;
  RdmaView::Resource resource;
  words >> device >> resource.kind;
  if (!wants(device, resource.kind)) return true;
  for (std::string word; words >> word;) {
    size_t equals = word.find('=');
    if (equals != word.npos) resource.values[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return take(resource);
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
    if (std::optional<Device> device = named(name)) devices.push_back(*device);
  }
  std::sort(devices.begin(), devices.end(),
            [](const Device& a, const Device& b) { return a.index < b.index; });
  return devices;
}

// A /sys that somebody has made may lack the first file, or have a wrong one: then all are listed.
std::optional<RdmaView::Device> RdmaView::device(uint64_t index) const {
  std::string name = text("class/infiniband_verbs/uverbs" + std::to_string(index) + "/ibdev");
  bool is_name = !name.empty() && name.front() != '.' && name.find('/') == name.npos;
  std::optional<Device> said = is_name ? named(name) : std::nullopt;
  if (said && said->index == index) return said;
  for (const Device& device : devices()) {
    if (device.index == index) return device;
  }
  return std::nullopt;
}

// Null if it is unbound, or just about to leave.
std::optional<RdmaView::Device> RdmaView::named(const std::string& name) const {
  std::string at = std::string(kClass) + "/" + name;
  std::vector<std::string> nodes = names(at + "/device/infiniband_verbs");
  if (nodes.empty()) return std::nullopt;
  auto ports = static_cast<uint32_t>(names(at + "/ports").size());
  return Device{name, number_of(nodes.front()), ports};
}

// Does not wait for a FIFO or a device that somebody has put there.
Fd RdmaView::open_file(const std::string& path, int flags) const {
  return open_below(root_, "sys/" + path, O_RDONLY | O_NONBLOCK | O_NOCTTY | flags,
                    RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

Fd RdmaView::open_regular(const std::string& path) const {
  Fd file = open_file(path, 0);
  struct stat status;
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return file;
}

std::string RdmaView::text(const std::string& path) const {
  Fd file = open_regular(path);
  std::string text;
  char part[kLongestText];
  ssize_t got;
  while (file && text.size() < kLongestText &&
         (got = ::read(file.get(), part, kLongestText - text.size())) > 0) {
    text.append(part, static_cast<size_t>(got));
  }
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
    if (names.size() == kMostNames) break;
    if (entry->d_name[0] != '.') names.push_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void RdmaView::resources(const Wants& wants, const Take& take) const {
  Fd file = open_regular("kernel/debug/rocefs/resources");
  std::string part(64 * 1024, '\0'), line;
  ssize_t got;
  for (size_t octets = 0; file && octets < kMostResources; octets += static_cast<size_t>(got)) {
    got = ::read(file.get(), part.data(), part.size());
    if (got <= 0) break;
    std::string_view rest(part.data(), static_cast<size_t>(got));
    while (!rest.empty()) {
      size_t end = rest.find('\n');
      std::string_view text = rest.substr(0, end);
      line.append(text.substr(0, kLongestText + 1 - std::min(line.size(), kLongestText + 1)));
      if (end == rest.npos) break;
      rest.remove_prefix(end + 1);
      if (!take_line(line, wants, take)) return;
      line.clear();
    }
  }
  if (!line.empty()) take_line(line, wants, take);
}

}  // namespace rocefs
