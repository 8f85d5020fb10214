// The command line of rocefs, with the habits of FUSE file systems.
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
  std::string config;      // empty: the default topology
  std::string uplink;      // an address; empty: none is asked for
  bool gso = false;        // of the uplink
  bool allow_pcc = false;  // programs of all users may set windows
  // Not given: the config file's, or the default.
  std::optional<ClockMode> clock;
  std::optional<uint64_t> seed, dilation;
  uid_t uid = 0;
  gid_t gid = 0;
  // What runs the owner's plugins is of this group: the owner's own where uid= came without gid=.
  std::optional<gid_t> plugin_gid;
  std::vector<std::string> mount_options;  // for FUSE
  // Of open files, soft, that rocefs was started with: children that run others' code get it.
  rlim_t open_files = RLIM_INFINITY;
};

extern const char* const kUsage;

// EINVAL with what is wrong.
Result<Options> parse_options(int argc, char** argv);

}  // namespace rocefs
