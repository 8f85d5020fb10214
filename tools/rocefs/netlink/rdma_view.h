// RdmaView: the RDMA devices that a process sees in /sys, as the answers of RDMA netlink need them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
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
  // The device with that index. Programs ask for each device several times: reads no other's files.
  std::optional<Device> device(uint64_t index) const;
  // Without its newline; empty if there is no such file. `path`: below /sys. The asker may have
  // made the file: no more is read than an attribute of sysfs has, 4 KiB.
  std::string text(const std::string& path) const;
  // Sorted; 4,096 of a directory at most. Empty if there is no such directory.
  std::vector<std::string> names(const std::string& path) const;
  // Takes the resources of a device that `wants`, until `take` returns false. The first 16 MiB of
  // the file count, and lines of up to 4 KiB.
  using Wants = std::function<bool(std::string_view device, std::string_view kind)>;
  using Take = std::function<bool(const Resource&)>;
  void resources(const Wants& wants, const Take& take) const;

 private:
  std::optional<Device> named(const std::string& name) const;
  Fd open_regular(const std::string& path) const;
  Fd open_file(const std::string& path, int flags) const;

  const int root_;
};

}  // namespace rocefs
