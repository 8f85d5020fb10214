// DeviceView: the part of the tree that a machine with some of the devices has.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace rocefs {

class DeviceView {
 public:
  // Shows the whole tree.
  DeviceView() = default;
  // Shows these devices (mb_0) alone. `tree`: path of a mounted rocefs. A device that its driver
  // has let go is not shown.
  static Result<DeviceView> of(const std::string& tree, const std::vector<std::string>& devices);

  bool whole() const { return whole_; }
  // Whether the tree's entry is there. `directory`: its path below the tree; dev/… for /dev.
  // `link`: text of a symbolic link, else empty.
  bool shows(const std::string& directory, const std::string& name, const std::string& link) const;
  // Whether the directory has, or may get, entries that are not shown, in it or below it.
  bool is_partial(std::string_view directory) const;

 private:
  bool whole_ = true;
  std::set<std::string, std::less<>> functions_;  // names of PCI functions: 0000:2b:00.0
  std::set<std::string, std::less<>> nodes_;      // character devices: uverbs0
};

}  // namespace rocefs
