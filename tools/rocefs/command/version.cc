#include "tools/rocefs/command/version.h"

#include <fmt/format.h>

#include <cstdio>

#include "core/version/version.h"
#include "rdma/uapi/registers.h"
#include "rdma/uapi/uapi.h"
#include "tools/rocefs/command/exit_status.h"

namespace rocefs {

std::string version_text() {
  return fmt::format(
      "rocefs {}\n"
      "interfaces: tree {}, programs {}, register pages {}; providers for libibverbs' {}\n"
      "built with {}\n",
      kVersion, kTreeAbi, static_cast<int>(ROCEFS_UAPI_VERSION),
      static_cast<int>(ROCEFS_REGISTERS_VERSION), kProviderAbis, kBuiltWith);
}

int print_version() {
  std::fputs(version_text().c_str(), stdout);
  return finish_output(0);
}

}  // namespace rocefs
