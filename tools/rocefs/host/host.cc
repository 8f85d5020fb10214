#include "tools/rocefs/host/host.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/process/mount_table.h"
#include "tools/rocefs/command/exit_status.h"
#include "tools/rocefs/command/version.h"
#include "tools/rocefs/enter/launch.h"
#include "tools/rocefs/host/host_session.h"
#include "tools/rocefs/host/join.h"
#include "tools/rocefs/host/maker.h"
#include "tools/rocefs/netlink/proxy.h"

namespace rocefs {

const char* const kHostUsage =
    R"(usage: rocefs host [-m MOUNTPOINT] NAME [COMMAND…]
       rocefs host [-m MOUNTPOINT] NAME -- COMMAND [ARGUMENT…]

Runs a command on host NAME, a machine around one of the mounted NICs: with its interfaces, its
addresses, its name, and its NICs alone in /sys and /dev/infiniband. All hosts are on the emulated
network; each knows the others by name. Without a command, runs a shell. As with ssh, words without
"--" are joined and given to the shell; behind "--" they are a command and its arguments.

The first command makes all hosts; they last as long as the mount. For root and the mount's owner.
kernel/debug/rocefs/hosts lists the hosts.

  -m MOUNTPOINT   mount of the host ($ROCEFS_MOUNT, or the only mounted rocefs)
  -h, --help      this text
  -V, --version

The exit status is that of the command; 125 if the host could not be prepared, 126 if the command
cannot be run, 127 if it is not found.

  rocefs host mb_0 ib_write_bw & rocefs host mb_1 ib_write_bw mb_0
)";

namespace {

constexpr char kProgram[] = "rocefs host";

// Words for execvp(3).
std::vector<std::string> command_of(char** words) {
  const char* named = std::getenv("SHELL");
  std::string shell = named && *named ? named : "/bin/sh";
  if (!*words) return {shell};
  if (std::strcmp(*words, "--") == 0) {
    std::vector<std::string> command;
    while (*++words) command.push_back(*words);
    return command;
  }
  std::string joined = *words;
  while (*++words) joined += std::string(" ") + *words;
  return {shell, "-c", joined};
}

Result<RunningHost> reach(const std::string& mount_point, const std::string& name) {
  Result<HostSession> session = HostSession::open(mount_point);
  if (!session) return session.error();
  for (bool made = false;; made = true) {
    Result<std::optional<RunningHost>> entered = session->enter(name);
    if (!entered) return entered.error();
    if (*entered) return std::move(**entered);
    if (made) return errorf(EAGAIN, "{} has ended again", name);
    if (Result<void> done = make_hosts(mount_point, name, *session); !done) return done.error();
  }
}

Result<void> prepare(const std::string& wanted, const std::string& name) {
  Result<std::string> mount_point = chosen_mount(wanted);
  if (!mount_point) return mount_point.error();
  if (Result<void> checked = check_host(*mount_point, name); !checked) return checked;
  Result<RunningHost> running = reach(*mount_point, name);
  if (!running) return running.error();
  Result<void> done = join_host(*running);
  if (done) done = answer_rdma_netlink();
  export_mount(*mount_point);
  return done;
}

}  // namespace

int host(int argc, char** argv) {
  Result<LaunchOptions> options = parse_launch(argc, argv);
  if (options && options->version) return print_version();
  if (options && !options->help && !*options->rest) options = Error{EINVAL, "a host is wanted"};
  if (!options) return refuse_usage(kProgram, options.error());
  if (options->help) {
    std::fputs(kHostUsage, stdout);
    return finish_output(0);
  }
  std::vector<std::string> words = command_of(options->rest + 1);
  if (words.empty()) return refuse_usage(kProgram, {EINVAL, "a command is wanted behind --"});
  if (Result<void> prepared = prepare(options->mount_point, *options->rest); !prepared) {
    return print_not_prepared(kProgram, prepared.error());
  }
  std::vector<char*> command;
  for (std::string& word : words) command.push_back(word.data());
  command.push_back(nullptr);
  return replace_by(kProgram, command.data());
}

}  // namespace rocefs
