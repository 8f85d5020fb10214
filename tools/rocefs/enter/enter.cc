#include "tools/rocefs/enter/enter.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/process/mount_table.h"
#include "fs/namespaces.h"
#include "tools/rocefs/command/exit_status.h"
#include "tools/rocefs/command/version.h"
#include "tools/rocefs/enter/launch.h"
#include "tools/rocefs/enter/overlay.h"
#include "tools/rocefs/netlink/proxy.h"

namespace rocefs {

const char* const kEnterUsage =
    R"(usage: rocefs enter [-m MOUNTPOINT] [--] COMMAND [ARGUMENT…]

Runs COMMAND with the NICs of a mounted rocefs in /sys, beside the machine's own entries, and in
/dev/infiniband. RDMAV_DRIVERS names their libibverbs provider. Other processes see no change. Needs
no root: every user who may read the mount may enter it.

  -m MOUNTPOINT   mount to enter ($ROCEFS_MOUNT, or the only mounted rocefs)
  -h, --help      this text
  -V, --version

The exit status is that of COMMAND; 125 if it could not be prepared, 126 if it cannot be run, 127 if
it is not found.

  rocefs enter -- ibstat
)";

namespace {

Result<void> prepare(const std::string& wanted) {
  Result<std::string> mount_point = chosen_mount(wanted);
  if (!mount_point) return mount_point.error();
  Result<Overlay> overlay = Overlay::of(*mount_point);
  if (!overlay) return overlay.error();
  std::unique_ptr<char, decltype(&std::free)> here(::getcwd(nullptr, 0), std::free);
  Result<void> done = enter_private_mounts(overlay->places());
  if (done) done = overlay->lay();
  // Looks up a working directory below /sys again, so that it is the covered one.
  if (done && here) (void)!::chdir(here.get());
  if (done) done = answer_rdma_netlink();
  export_mount(*mount_point);
  return done;
}

}  // namespace

int enter(int argc, char** argv) {
  Result<LaunchOptions> options = parse_launch(argc, argv);
  if (options && options->version) return print_version();
  if (options && !options->help && !*options->rest) options = Error{EINVAL, "a command is wanted"};
  if (!options) return refuse_usage("rocefs enter", options.error());
  if (options->help) {
    std::fputs(kEnterUsage, stdout);
    return finish_output(0);
  }
  if (Result<void> prepared = prepare(options->mount_point); !prepared) {
    return print_not_prepared("rocefs enter", prepared.error());
  }
  return replace_by("rocefs enter", options->rest);
}

}  // namespace rocefs
