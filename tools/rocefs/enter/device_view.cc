#include "tools/rocefs/enter/device_view.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace rocefs {
namespace {

namespace files = std::filesystem;

constexpr std::string_view kRootComplexes = "devices/pci";

// The PCI function that a path below the tree is of; empty if it is of none.
std::string_view function_of(std::string_view path) {
  if (!path.starts_with(kRootComplexes)) return {};
  size_t begin = path.find('/', kRootComplexes.size());
  if (begin == path.npos) return {};
  return path.substr(begin + 1, path.find('/', begin + 1) - begin - 1);
}

bool is_device_node(std::string_view name) {
  constexpr std::string_view kKinds[] = {"uverbs", "umad", "issm"};
  return std::any_of(std::begin(kKinds), std::end(kKinds),
                     [&](std::string_view kind) { return name.starts_with(kind); });
}

}  // namespace

Result<DeviceView> DeviceView::of(const std::string& tree,
                                  const std::vector<std::string>& devices) {
  DeviceView view;
  view.whole_ = false;
  for (const std::string& device : devices) {
    std::error_code failed;
    files::path link = files::read_symlink(tree + "/class/infiniband/" + device, failed);
    if (failed == std::errc::no_such_file_or_directory) continue;
    if (failed) return errorf(failed.value(), "{}: {}", device, failed.message());
    std::string path = ("class/infiniband" / link).lexically_normal();
    std::string function(function_of(path));
    view.functions_.insert(function);
    std::string at = tree + "/" + path.substr(0, path.find(function) + function.size());
    for (const char* kind : {"/infiniband_verbs", "/infiniband_mad"}) {
      for (const auto& node : files::directory_iterator(at + kind, failed)) {
        view.nodes_.insert(node.path().filename());
      }
      if (failed) return errorf(failed.value(), "{}{}: {}", at, kind, failed.message());
    }
  }
  return view;
}

bool DeviceView::shows(const std::string& directory, const std::string& name,
                       const std::string& link) const {
  if (whole_) return true;
  if (directory == "dev/infiniband" && is_device_node(name)) return nodes_.count(name) != 0;
  std::string path = (files::path(directory) / (link.empty() ? name : link)).lexically_normal();
  std::string_view function = function_of(path);
  return function.empty() || functions_.count(function) != 0;
}

bool DeviceView::is_partial(std::string_view directory) const {
  if (whole_) return false;
  constexpr std::string_view kPartial[] = {
      "bus",   "bus/pci", "bus/pci/devices", "bus/pci/drivers",
      "class", "devices", "class/net",       "dev/infiniband",
  };
  if (directory.starts_with("class/infiniband")) {
    return directory.find('/', std::strlen("class/")) == directory.npos;
  }
  if (directory.starts_with("bus/pci/drivers/")) {
    return std::count(directory.begin(), directory.end(), '/') == 3;
  }
  if (directory.starts_with(kRootComplexes)) return function_of(directory).empty();
  return std::find(std::begin(kPartial), std::end(kPartial), directory) != std::end(kPartial);
}

}  // namespace rocefs
