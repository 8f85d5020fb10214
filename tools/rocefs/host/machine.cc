#include "tools/rocefs/host/machine.h"

#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_tun.h>
#include <linux/nsfs.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/fd.h"
#include "fs/namespaces.h"
#include "rdma/host/route_client.h"
#include "tools/rocefs/enter/overlay.h"

namespace rocefs {
namespace {

constexpr char kLocalNames[] = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n";

Error failure(const std::string& what, int code = errno) {
  return errorf(code, "{}: {}", what, std::strerror(code));
}

bool write_file(const std::string& path, std::string_view text) {
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Lets ethtool(8) say the cable's speed instead of a TAP's. An older kernel keeps that.
void set_speed(const InterfaceLine& interface) {
  ethtool_cmd settings{};
  settings.cmd = ETHTOOL_SSET;
  settings.duplex = DUPLEX_FULL;
  settings.port = PORT_OTHER;
  settings.autoneg = AUTONEG_DISABLE;
  ethtool_cmd_speed_set(&settings, interface.speed);
  ifreq request{};
  interface.name.copy(request.ifr_name, sizeof request.ifr_name - 1);
  request.ifr_data = reinterpret_cast<char*>(&settings);
  Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket && interface.speed > 0) (void)::ioctl(socket.get(), SIOCETHTOOL, &request);
}

Result<Fd> make_tap(const std::string& name) {
  constexpr char kPath[] = "/dev/net/tun";
  Fd tap(::open(kPath, O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!tap) {
    return errorf(errno, "{}: {}: interfaces of hosts are TAP devices", kPath,
                  std::strerror(errno));
  }
  ifreq request{};
  if (name.size() >= sizeof request.ifr_name) return errorf(EINVAL, "{}: name too long", name);
  name.copy(request.ifr_name, name.size());
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  // The engine lets go of an interface of this name, which was attached here before, a little later
  // than it says so.
  constexpr int kTries = 100;
  constexpr unsigned kPauseUs = 10'000;
  for (int left = kTries; ::ioctl(tap.get(), TUNSETIFF, &request) != 0; --left) {
    int code = errno;
    if (code == EBUSY && left > 0) {
      ::usleep(kPauseUs);
      continue;
    }
    // The kernel says EINVAL of an interface that is no TAP.
    bool taken = (code == EBUSY || code == EINVAL) && ::if_nametoindex(name.c_str()) != 0;
    if (taken) return errorf(EEXIST, "the network namespace has an interface {} already", name);
    return failure(name, code);
  }
  // Addresses are usable at once: the emulated fabric has no duplicates.
  (void)write_file("/proc/sys/net/ipv6/conf/" + name + "/accept_dad", "0");
  return tap;
}

Result<void> make_interfaces(const HostDescription& host, HostSession& session, int socket) {
  RouteClient route(socket);
  Result<void> done = route.set_up("lo");
  for (size_t number = 0; done && number < host.interfaces.size(); ++number) {
    const InterfaceLine& interface = host.interfaces[number];
    Result<Fd> tap = make_tap(interface.name);
    if (!tap) return tap.error();
    set_speed(interface);
    done = route.set_link(interface);
    for (const InterfaceAddress& address : interface.addresses) {
      if (done) done = route.add_address(interface.name, address);
    }
    if (done) {
      done = session.give(ROCEFS_HOST_PLUG, host.name, static_cast<uint32_t>(number), tap->get());
    }
  }
  return done;
}

Result<void> route_to_others(const HostDescription& host, const std::vector<HostDescription>& all,
                             int socket) {
  RouteClient route(socket);
  std::vector<InterfaceLine> others;
  for (const HostDescription& other : all) {
    if (other.name == host.name) continue;
    others.insert(others.end(), other.interfaces.begin(), other.interfaces.end());
  }
  for (const InterfaceAddress& to : networks_beyond(host.interfaces, others)) {
    Result<void> added = route.add_route(host.interfaces.front().name, to);
    if (!added) return added;
  }
  return {};
}

// The engine gets a socket that tells it of changes, one to make changes, and one in `parking`.
Result<void> make_network(const HostDescription& host, const std::vector<HostDescription>& all,
                          int parking, HostSession& session) {
  Result<Fd> changes = open_route_socket();
  if (!changes) return changes.error();
  Result<Fd> requests = open_route_socket();
  if (!requests) return requests.error();
  Result<void> done = make_interfaces(host, session, requests->get());
  if (done) done = route_to_others(host, all, requests->get());
  if (done) done = session.give(ROCEFS_HOST_WATCH, host.name, 0, changes->get());
  if (done) done = session.give(ROCEFS_HOST_PARK, host.name, 0, requests->get());
  if (done) done = session.give(ROCEFS_HOST_PARK, host.name, 1, parking);
  return done;
}

// Lays a file over /etc/hosts. It needs a file system for a moment, and a place for that: /sys.
Result<void> name_hosts(const std::vector<HostDescription>& all) {
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  if (::mount("rocefs-host", "/sys", "tmpfs", kFlags, "mode=0755") != 0) return failure("/sys");
  Result<void> done;
  if (!write_file("/sys/hosts", kLocalNames + host_names(all)) ||
      ::mount("/sys/hosts", "/etc/hosts", nullptr, MS_BIND, nullptr) != 0) {
    done = failure("/etc/hosts");
  }
  if (::umount2("/sys", MNT_DETACH) != 0 && done) done = failure("/sys");
  return done;
}

// Shows the interfaces of this network namespace in /sys. A container may forbid it; then /sys
// stays the machine's, with the mounted NICs alone in class/net.
void renew_sysfs() {
  Fd control_groups(
      ::open_tree(AT_FDCWD, "/sys/fs/cgroup", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  if (::mount("sysfs", "/sys", "sysfs", kFlags, nullptr) != 0 || !control_groups) return;
  (void)::move_mount(control_groups.get(), "", AT_FDCWD, "/sys/fs/cgroup", MOVE_MOUNT_F_EMPTY_PATH);
}

Result<void> make_mounts(const std::string& mount_point, const HostDescription& host,
                         const std::vector<HostDescription>& all) {
  Result<DeviceView> view = DeviceView::of(mount_point, host.devices);
  if (!view) return view.error();
  Result<Overlay> overlay = Overlay::of(mount_point, std::move(*view));
  if (!overlay) return overlay.error();
  if (Result<void> kept = keep_mounts_inside(overlay->places()); !kept) return kept;
  if (Result<void> named = name_hosts(all); !named) return named;
  renew_sysfs();
  return overlay->lay();
}

Result<void> give_namespaces(const HostDescription& host, HostSession& session) {
  constexpr const char* kNames[] = {"user", "mnt", "uts", "net"};
  static_assert(std::size(kNames) == ROCEFS_HOST_NAMESPACES);
  for (uint32_t number = 0; number < ROCEFS_HOST_NAMESPACES; ++number) {
    std::string path = fmt::format("/proc/self/ns/{}", kNames[number]);
    Fd space(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!space) return failure(path);
    Result<void> given = session.give(ROCEFS_HOST_NAMESPACE, host.name, number, space.get());
    if (!given) return given;
  }
  return {};
}

}  // namespace

Result<void> join_network(int network) {
  if (::setns(network, CLONE_NEWNET) == 0) return {};
  if (errno != EPERM) return failure("the network namespace");
  Fd owner(::ioctl(network, NS_GET_USERNS));
  if (!owner || ::setns(owner.get(), CLONE_NEWUSER) != 0 || ::setns(network, CLONE_NEWNET) != 0) {
    return failure("the network namespace");
  }
  return {};
}

Result<Fd> open_parking() {
  if (::unshare(CLONE_NEWNET) != 0) return failure("a network namespace");
  return open_route_socket();
}

Result<void> make_machine(const std::string& mount_point, const HostDescription& host,
                          const std::vector<HostDescription>& all, int network, int parking,
                          HostSession& session) {
  Fd own_parking;
  if (network >= 0) {
    if (Result<void> joined = join_network(network); !joined) return joined;
    Result<Fd> opened = open_parking();
    if (!opened) return opened.error();
    own_parking = std::move(*opened);
    parking = own_parking.get();
    if (Result<void> joined = join_network(network); !joined) return joined;
  }
  int fresh = CLONE_NEWNS | CLONE_NEWUTS | (network < 0 ? CLONE_NEWNET : 0);
  if (::unshare(fresh) != 0) return failure("namespaces");
  if (::sethostname(host.name.data(), host.name.size()) != 0) return failure("the host's name");
  Result<void> done = make_mounts(mount_point, host, all);
  if (done) done = make_network(host, all, parking, session);
  if (done) done = give_namespaces(host, session);
  if (done) done = session.give(ROCEFS_HOST_STARTED, host.name, 0, -1);
  return done;
}

}  // namespace rocefs
