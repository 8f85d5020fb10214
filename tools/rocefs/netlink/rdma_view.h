// RdmaView: the RDMA devices that a process sees in /sys, as the answers of RDMA netlink need them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/fd.h"

namespace rocefs {

class RdmaView {
 public:
  struct Device {
    std::string name;
    uint32_t index = 0;  // of its uverbsN
    uint32_t ports = 0;
  };
  // An object of kernel/debug/rocefs/resources.
  struct Resource {
    std::string kind;  // qp, cq, mr, pd, ctx, srq, cm_id
    std::map<std::string, std::string, std::less<>> values;

    uint64_t number(std::string_view key) const;  // 0 if it is not there
    const std::string& text(std::string_view key) const;
  };

  // `root`: descriptor of a root directory, for example /proc/PID/root; not owned. No link leads
  // out of it.
  explicit RdmaView(int root) : root_(root) {}

  // By index.
  std::vector<Device> devices() const;
  // Without its newline; empty if there is no such file. `path`: below /sys.
  std::string text(const std::string& path) const;
  // Sorted. Empty if there is no such directory.
  std::vector<std::string> names(const std::string& path) const;
  std::vector<Resource> resources(const std::string& device) const;

 private:
  Fd open_file(const std::string& path, int flags) const;

  const int root_;
};

}  // namespace rocefs
