#include "tools/rocefs/enter/enter.h"

#include <getopt.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/process/mount_table.h"
#include "fs/namespaces.h"
#include "tools/rocefs/command/exit_status.h"
#include "tools/rocefs/enter/netlink_filter.h"
#include "tools/rocefs/enter/overlay.h"
#include "tools/rocefs/enter/provider.h"

namespace rocefs {

const char* const kEnterUsage =
    R"(usage: rocefs enter [-m MOUNTPOINT] [--] COMMAND [ARGUMENT…]

Runs COMMAND with the NICs of a mounted rocefs in /sys, beside the machine's own entries, and in
/dev/infiniband. RDMAV_DRIVERS names their libibverbs provider. Other processes see no change. Needs
no root: every user who may read the mount may enter it.

  -m MOUNTPOINT   mount to enter ($ROCEFS_MOUNT, or the only mounted rocefs)
  -h, --help      this text

The exit status is that of COMMAND; 125 if it could not be prepared, 126 if it cannot be run, 127 if
it is not found.

  rocefs enter -- ibstat
)";

namespace {

enum Exit { kNotPrepared = 125, kNotExecutable = 126, kNotFound = 127 };

struct Order {
  bool help = false;
  std::string mount_point;
  char** command = nullptr;
};

Result<Order> parse(int argc, char** argv) {
  Order order;
  constexpr option kLong[] = {{"help", no_argument, nullptr, 'h'}, {nullptr, 0, nullptr, 0}};
  opterr = 0;
  // "+": parsing ends at the command; options behind it are the command's own.
  for (int c; (c = getopt_long(argc, argv, "+:m:h", kLong, nullptr)) != -1;) {
    switch (c) {
      case 'm':
        if (!*optarg) return Error{EINVAL, "-m requires a mount point"};
        order.mount_point = optarg;
        break;
      case 'h':
        order.help = true;
        return order;
      case ':':
        return errorf(EINVAL, "-{} requires a mount point", static_cast<char>(optopt));
      default:
        if (optopt) return errorf(EINVAL, "unknown option -{}", static_cast<char>(optopt));
        return errorf(EINVAL, "unknown option {}", argv[optind - 1]);
    }
  }
  if (optind == argc) return Error{EINVAL, "a command is wanted"};
  order.command = argv + optind;
  return order;
}

// Names the provider of rocefs to libibverbs, which loads it beside its own. Setuid programs ignore
// the variable.
void name_provider() {
  char program[PATH_MAX];
  ssize_t size = ::readlink("/proc/self/exe", program, sizeof program);
  std::string driver = find_provider({program, static_cast<size_t>(std::max<ssize_t>(size, 0))});
  if (driver.empty()) return;
  const char* others = std::getenv("RDMAV_DRIVERS");
  if (!others) others = std::getenv("IBV_DRIVERS");  // older name, read without RDMAV_DRIVERS alone
  ::setenv("RDMAV_DRIVERS", with_driver(driver, others ? others : "").c_str(), 1);
}

Result<void> prepare(const Order& order) {
  const char* named = std::getenv("ROCEFS_MOUNT");
  std::string wanted = !order.mount_point.empty() || !named ? order.mount_point : named;
  std::string left_out;
  Result<std::string> mount_point = find_rocefs(wanted, left_out);
  std::fputs(left_out.c_str(), stderr);
  if (!mount_point) return mount_point.error();
  Result<Overlay> overlay = Overlay::of(*mount_point);
  if (!overlay) return overlay.error();
  std::unique_ptr<char, decltype(&std::free)> here(::getcwd(nullptr, 0), std::free);
  Result<void> done = enter_private_mounts(overlay->places());
  if (done) done = overlay->lay();
  // Looks up a working directory below /sys again, so that it is the covered one.
  if (done && here) (void)!::chdir(here.get());
  if (done) done = refuse_rdma_netlink();
  ::setenv("ROCEFS_MOUNT", mount_point->c_str(), 1);
  // libibverbs looks in $SYSFS_PATH instead of /sys, libibumad does not.
  ::unsetenv("SYSFS_PATH");
  // Without it udevadm(8) ignores devices outside of a sysfs file system.
  ::setenv("SYSTEMD_DEVICE_VERIFY_SYSFS", "0", 1);
  name_provider();
  return done;
}

}  // namespace

int enter(int argc, char** argv) {
  Result<Order> order = parse(argc, argv);
  if (!order) {
    std::fprintf(stderr, "rocefs enter: %s\nTry 'rocefs enter --help'.\n",
                 order.error().reason.c_str());
    return kUsageError;
  }
  if (order->help) {
    std::fputs(kEnterUsage, stdout);
    return finish_output(0);
  }
  if (Result<void> prepared = prepare(*order); !prepared) {
    std::fprintf(stderr, "rocefs enter: %s\n", prepared.error().reason.c_str());
    return kNotPrepared;
  }
  ::execvp(order->command[0], order->command);
  int code = errno;
  std::fprintf(stderr, "rocefs enter: %s: %s\n", order->command[0], std::strerror(code));
  return code == ENOENT ? kNotFound : kNotExecutable;
}

}  // namespace rocefs
