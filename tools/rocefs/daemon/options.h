// The command line of `rocefs MOUNTPOINT`, in the style of FUSE file systems.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/result.h"

namespace rocefs {

struct Options {
  bool help = false, version = false;
  bool foreground = false, debug = false;
  std::string source = "rocefs";
  std::string mount_point;
  std::string config;      // path; empty: the default topology
  std::string uplink;      // address; empty: no uplink
  bool gso = false;        // of the uplink
  bool allow_pcc = false;  // programs of all users may set windows
  // Empty if not given: the configuration's value or the default holds.
  std::optional<ClockMode> clock;
  std::optional<uint64_t> seed, dilation;
  size_t cores = 1;  // most threads that run packets
  uid_t uid = 0;
  gid_t gid = 0;
  mode_t mode = 0644;  // of files that can be written
  // Group of the process that runs the owner's plugins: that of gid=, else the owner's own group.
  std::optional<gid_t> plugin_gid;
  std::vector<std::string> mount_options;  // for FUSE
  // Soft limit of open files that rocefs was started with, for children that run other people's
  // code.
  rlim_t open_files = RLIM_INFINITY;
};

extern const char* const kUsage;

// EINVAL with a reason.
Result<Options> parse_options(int argc, char** argv);

}  // namespace rocefs
