// Start of the commands of `rocefs enter` and `rocefs host`: options, the choice of the mount, the
// environment of a command that sees it, and the command's start.
#pragma once

#include <string>

#include "core/base/result.h"

namespace rocefs {

// Exit statuses without a command, as those of env(1) and chroot(1).
enum LaunchExit { kNotPrepared = 125, kNotExecutable = 126, kNotFound = 127 };

struct LaunchOptions {
  bool help = false, version = false;
  std::string mount_point;  // of -m, or empty
  char** rest = nullptr;    // arguments behind the options, up to a null
};

// Parses -m, -h and -V. Options behind the first argument are the command's own.
Result<LaunchOptions> parse_launch(int argc, char** argv);

// Prints the reason and where help is; returns the exit status. `program`: rocefs enter.
int refuse_usage(const char* program, const Error& why);
int print_not_prepared(const char* program, const Error& why);

// Sets the environment by which stock programs find the NICs: ROCEFS_MOUNT, RDMAV_DRIVERS and
// SYSTEMD_DEVICE_VERIFY_SYSFS. Removes SYSFS_PATH.
void export_mount(const std::string& mount_point);

// Replaces the process by the command. Returns an exit status after a line on stderr if that fails.
int replace_by(const char* program, char* const* command);

}  // namespace rocefs
