#include "tools/rocefs/host/attach.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/fd.h"
#include "core/base/kstrto.h"
#include "tools/rocefs/command/exit_status.h"
#include "tools/rocefs/enter/launch.h"
#include "tools/rocefs/host/host_session.h"
#include "tools/rocefs/host/interface_line.h"
#include "tools/rocefs/host/maker.h"

namespace rocefs {

const char* const kAttachUsage =
    R"(usage: rocefs attach [-m MOUNTPOINT] NAME --netns PATH
       rocefs attach [-m MOUNTPOINT] NAME --pid PID

Makes the interfaces of host NAME, with their addresses, in a network namespace that is there already:
a container's, by the PID of one of its processes, or one of `ip netns` (/run/netns/…). The host's own
interfaces go; `rocefs host NAME` runs its commands in that namespace from now on, and librdmacm gives
programs there the host's devices. For root and the mount's owner.

  -m MOUNTPOINT   mount of the host ($ROCEFS_MOUNT, or the only mounted rocefs)
  --netns PATH    a network namespace
  --pid PID       that of a process
  -h, --help      this text

  rocefs attach mb_0 --pid $(docker inspect -f '{{.State.Pid}}' web)
)";

const char* const kDetachUsage =
    R"(usage: rocefs detach [-m MOUNTPOINT] NAME

Takes the interfaces of host NAME out of the network namespace that `rocefs attach` has made them in.
The next `rocefs host` makes the host anew.

  -m MOUNTPOINT   mount of the host ($ROCEFS_MOUNT, or the only mounted rocefs)
  -h, --help      this text
)";

namespace {

// The words behind the name: the path of a network namespace.
Result<std::string> network_path(char** words) {
  std::vector<std::string_view> given;
  for (; *words; ++words) given.push_back(*words);
  if (given.size() != 2 || (given[0] != "--netns" && given[0] != "--pid")) {
    return Error{EINVAL, "--netns PATH or --pid PID is wanted behind the host"};
  }
  if (given[0] == "--netns") return std::string(given[1]);
  Result<uint64_t> pid = kstrtou64(given[1], 10);
  if (!pid || *pid == 0) return errorf(EINVAL, "--pid {}: no process", given[1]);
  return fmt::format("/proc/{}/ns/net", *pid);
}

Result<void> attach_to(const std::string& mount, const std::string& name,
                       const std::string& network) {
  Result<std::string> mount_point = chosen_mount(mount);
  if (!mount_point) return mount_point.error();
  if (Result<void> checked = check_host(*mount_point, name); !checked) return checked;
  Fd space(::open(network.c_str(), O_RDONLY | O_CLOEXEC));
  if (!space) return errorf(errno, "{}: {}", network, std::strerror(errno));
  if (::ioctl(space.get(), NS_GET_NSTYPE) != CLONE_NEWNET) {
    return errorf(EINVAL, "{} is no network namespace", network);
  }
  Result<HostSession> session = HostSession::open(*mount_point);
  if (!session) return session.error();
  return make_host_in(*mount_point, name, space.get(), *session);
}

Result<void> detach_from(const std::string& mount, const std::string& name) {
  Result<std::string> mount_point = chosen_mount(mount);
  if (!mount_point) return mount_point.error();
  if (Result<void> checked = check_host(*mount_point, name); !checked) return checked;
  Result<HostSession> session = HostSession::open(*mount_point);
  if (!session) return session.error();
  return session->give(ROCEFS_HOST_DETACH, name, 0, -1);
}

int finish(const char* program, const Result<void>& done) {
  return done ? 0 : print_not_prepared(program, done.error());
}

}  // namespace

int attach(int argc, char** argv) {
  constexpr char kProgram[] = "rocefs attach";
  Result<LaunchOptions> options = parse_launch(argc, argv);
  if (options && options->help) {
    std::fputs(kAttachUsage, stdout);
    return finish_output(0);
  }
  if (options && !*options->rest) options = Error{EINVAL, "a host is wanted"};
  if (!options) return refuse_usage(kProgram, options.error());
  Result<std::string> network = network_path(options->rest + 1);
  if (!network) return refuse_usage(kProgram, network.error());
  return finish(kProgram, attach_to(options->mount_point, *options->rest, *network));
}

int detach(int argc, char** argv) {
  constexpr char kProgram[] = "rocefs detach";
  Result<LaunchOptions> options = parse_launch(argc, argv);
  if (options && options->help) {
    std::fputs(kDetachUsage, stdout);
    return finish_output(0);
  }
  if (options && (!*options->rest || options->rest[1]))
    options = Error{EINVAL, "one host is wanted"};
  if (!options) return refuse_usage(kProgram, options.error());
  return finish(kProgram, detach_from(options->mount_point, *options->rest));
}

}  // namespace rocefs
