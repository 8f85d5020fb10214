#include "tools/rocefs/host/attach.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/fd.h"
#include "core/base/kstrto.h"
#include "core/process/mount_table.h"
#include "tools/rocefs/command/exit_status.h"
#include "tools/rocefs/command/version.h"
#include "tools/rocefs/enter/launch.h"
#include "tools/rocefs/host/container_view.h"
#include "tools/rocefs/host/description.h"
#include "tools/rocefs/host/host_session.h"
#include "tools/rocefs/host/maker.h"

namespace rocefs {

const char* const kAttachUsage =
    R"(usage: rocefs attach [-m MOUNTPOINT] NAME --netns PATH
       rocefs attach [-m MOUNTPOINT] NAME --pid PID

Makes the interfaces of host NAME, with their addresses, in a network namespace that is there already:
a container's, by the PID of one of its processes, or one of `ip netns` (/run/netns/…). The host's own
interfaces go; `rocefs host NAME` runs its commands in that namespace from now on. With --pid, the
programs of the container also see the host's devices in /sys and /dev/infiniband, the names of all
hosts, and the libibverbs provider. For root and the mount's owner.

  -m MOUNTPOINT   mount of the host ($ROCEFS_MOUNT, or the only mounted rocefs)
  --netns PATH    a network namespace
  --pid PID       that of a process
  -h, --help      this text
  -V, --version

  rocefs attach mb_0 --pid $(docker inspect -f '{{.State.Pid}}' web)
)";

const char* const kDetachUsage =
    R"(usage: rocefs detach [-m MOUNTPOINT] NAME

Takes the interfaces of host NAME out of the network namespace that `rocefs attach` has made them in,
and its devices out of the container. The next `rocefs host` makes the host anew.

  -m MOUNTPOINT   mount of the host ($ROCEFS_MOUNT, or the only mounted rocefs)
  -h, --help      this text
  -V, --version
)";

namespace {

// Where a host goes, as it was given.
struct Place {
  std::string network;  // path of a network namespace, or
  uint64_t pid = 0;     // a process
};

struct Container {
  Fd network;
  Fd process;  // directory in /proc; missing where the network alone is given
};

Result<Place> parse_place(char** words) {
  std::vector<std::string_view> given;
  for (; *words; ++words) given.push_back(*words);
  if (given.size() == 2 && given[0] == "--netns") return Place{std::string(given[1]), 0};
  if (given.size() != 2 || given[0] != "--pid") {
    return Error{EINVAL, "--netns PATH or --pid PID is wanted behind the host"};
  }
  Result<uint64_t> pid = kstrtou64(given[1], 10);
  if (!pid || *pid == 0) return errorf(EINVAL, "--pid {}: no process", given[1]);
  return Place{fmt::format("/proc/{}/ns/net", *pid), *pid};
}

Result<Container> open_container(const Place& place) {
  Container container;
  if (place.pid != 0) {
    std::string path = fmt::format("/proc/{}", place.pid);
    container.process = Fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!container.process) return errorf(ESRCH, "there is no process {}", place.pid);
  }
  container.network = Fd(::open(place.network.c_str(), O_RDONLY | O_CLOEXEC));
  if (!container.network) return errorf(errno, "{}: {}", place.network, std::strerror(errno));
  if (::ioctl(container.network.get(), NS_GET_NSTYPE) != CLONE_NEWNET) {
    return errorf(EINVAL, "{} is no network namespace", place.network);
  }
  return container;
}

// A host of a mount, and the session in which it is moved.
struct Attachment {
  std::string mount_point;
  std::vector<HostDescription> all;
  const HostDescription* host;  // of `all`
  HostSession session;

  static Result<Attachment> open(const std::string& mount, const std::string& name) {
    Result<std::string> mount_point = chosen_mount(mount);
    if (!mount_point) return mount_point.error();
    Result<std::vector<HostDescription>> all = read_hosts(*mount_point);
    if (!all) return all.error();
    Result<const HostDescription*> host = find_host(*all, name, *mount_point);
    if (!host) return host.error();
    Result<HostSession> session = HostSession::open(*mount_point);
    if (!session) return session.error();
    return Attachment{std::move(*mount_point), std::move(*all), *host, std::move(*session)};
  }
};

// The network namespace that the host is attached to; no descriptor: it is not attached.
Result<Fd> old_network(Attachment& attachment) {
  if (!attachment.host->attached) return Fd();
  Result<std::optional<RunningHost>> entered =
      attachment.session.enter(attachment.host->name, ROCEFS_HOST_AS_IT_IS);
  if (!entered) return entered.error();
  return *entered ? std::move((*entered)->namespaces[ROCEFS_HOST_NET]) : Fd();
}

bool is_same(const Fd& one, const Fd& other) {
  struct stat its, others;
  return one && ::fstat(one.get(), &its) == 0 && ::fstat(other.get(), &others) == 0 &&
         its.st_ino == others.st_ino && its.st_dev == others.st_dev;
}

// Whether the devices of the host can be shown to the process; says why not.
Result<bool> can_take_view(const Fd& process, const std::string& host) {
  if (!process) return false;
  Result<std::string> reason = reason_against_view(process, host);
  if (!reason) return reason.error();
  if (reason->empty()) return true;
  std::fprintf(stderr,
               "rocefs attach: interfaces only, no devices in /sys of that process: %s; "
               "`rocefs host %s` runs programs with the devices\n",
               reason->c_str(), host.c_str());
  return false;
}

Result<void> attach_to(const std::string& mount, const std::string& name, const Place& place) {
  Result<Attachment> attachment = Attachment::open(mount, name);
  if (!attachment) return attachment.error();
  Result<Container> container = open_container(place);
  if (!container) return container.error();
  Result<void> done = check_network(container->network.get());
  if (!done) return done;
  Result<bool> takes_view = can_take_view(container->process, name);
  if (!takes_view) return takes_view.error();
  Result<Fd> old = old_network(*attachment);
  if (!old) return old.error();
  // There the names of the interfaces are taken by the host itself.
  bool same = is_same(*old, container->network);
  if (same) {
    remove_views(old->get());
    done = attachment->session.give(ROCEFS_HOST_DETACH, name, 0, -1);
  }
  if (done && *takes_view) {
    done =
        lay_view(container->process, attachment->mount_point, *attachment->host, attachment->all);
  }
  if (!done) return done;
  done = make_host_in(attachment->mount_point, name, container->network.get(), attachment->session);
  if (!done && *takes_view) (void)remove_view(container->process);
  if (!done || !*old || same) return done;
  remove_views(old->get());
  // The process may have the files of one that had the old view.
  if (!*takes_view) return done;
  return lay_view(container->process, attachment->mount_point, *attachment->host, attachment->all);
}

Result<void> detach_from(const std::string& mount, const std::string& name) {
  Result<Attachment> attachment = Attachment::open(mount, name);
  if (!attachment) return attachment.error();
  Result<Fd> old = old_network(*attachment);
  if (!old) return old.error();
  if (*old) remove_views(old->get());
  return attachment->session.give(ROCEFS_HOST_DETACH, name, 0, -1);
}

int finish(const char* program, const Result<void>& done) {
  return done ? 0 : print_not_prepared(program, done.error());
}

}  // namespace

int attach(int argc, char** argv) {
  constexpr char kProgram[] = "rocefs attach";
  Result<LaunchOptions> options = parse_launch(argc, argv);
  if (options && options->version) return print_version();
  if (options && options->help) {
    std::fputs(kAttachUsage, stdout);
    return finish_output(0);
  }
  if (options && !*options->rest) options = Error{EINVAL, "a host is wanted"};
  if (!options) return refuse_usage(kProgram, options.error());
  Result<Place> place = parse_place(options->rest + 1);
  if (!place) return refuse_usage(kProgram, place.error());
  return finish(kProgram, attach_to(options->mount_point, *options->rest, *place));
}

int detach(int argc, char** argv) {
  constexpr char kProgram[] = "rocefs detach";
  Result<LaunchOptions> options = parse_launch(argc, argv);
  if (options && options->version) return print_version();
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
