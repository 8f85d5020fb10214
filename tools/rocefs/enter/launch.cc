#include "tools/rocefs/enter/launch.h"

#include <getopt.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/process/mount_table.h"
#include "tools/rocefs/command/exit_status.h"
#include "tools/rocefs/enter/provider.h"

namespace rocefs {
namespace {

// Names the provider of rocefs to libibverbs, which loads it beside its own. Setuid programs ignore
// the variable.
void name_provider() {
  std::string driver = provider_of_program();
  if (driver.empty()) return;
  const char* others = std::getenv("RDMAV_DRIVERS");
  if (!others) others = std::getenv("IBV_DRIVERS");  // older name, read without RDMAV_DRIVERS alone
  ::setenv("RDMAV_DRIVERS", with_driver(driver, others ? others : "").c_str(), 1);
}

}  // namespace

Result<LaunchOptions> parse_launch(int argc, char** argv) {
  LaunchOptions options;
  constexpr option kLong[] = {{"help", no_argument, nullptr, 'h'},
                              {"version", no_argument, nullptr, 'V'},
                              {nullptr, 0, nullptr, 0}};
  opterr = 0;
  // "+": parsing ends at the first argument.
  for (int c; (c = getopt_long(argc, argv, "+:m:hV", kLong, nullptr)) != -1;) {
    switch (c) {
      case 'm':
        if (!*optarg) return Error{EINVAL, "-m requires a mount point"};
        options.mount_point = optarg;
        break;
      case 'h':
        options.help = true;
        return options;
      case 'V':
        options.version = true;
        return options;
      case ':':
        return errorf(EINVAL, "-{} requires a mount point", static_cast<char>(optopt));
      default:
        if (optopt) return errorf(EINVAL, "unknown option -{}", static_cast<char>(optopt));
        return errorf(EINVAL, "unknown option {}", argv[optind - 1]);
    }
  }
  options.rest = argv + optind;
  return options;
}

int refuse_usage(const char* program, const Error& why) {
  std::fprintf(stderr, "%s: %s\nTry '%s --help'.\n", program, why.reason.c_str(), program);
  return kUsageError;
}

int print_not_prepared(const char* program, const Error& why) {
  std::fprintf(stderr, "%s: %s\n", program, why.reason.c_str());
  return kNotPrepared;
}

void export_mount(const std::string& mount_point) {
  ::setenv("ROCEFS_MOUNT", mount_point.c_str(), 1);
  // libibverbs looks in $SYSFS_PATH instead of /sys, libibumad does not.
  ::unsetenv("SYSFS_PATH");
  // Without it udevadm(8) ignores devices outside of a sysfs file system.
  ::setenv("SYSTEMD_DEVICE_VERIFY_SYSFS", "0", 1);
  name_provider();
}

int replace_by(const char* program, char* const* command) {
  ::execvp(command[0], command);
  int code = errno;
  std::fprintf(stderr, "%s: %s: %s\n", program, command[0], std::strerror(code));
  return code == ENOENT ? kNotFound : kNotExecutable;
}

}  // namespace rocefs
