#include "tools/rocefs/host/maker.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "fs/namespaces.h"
#include "tools/rocefs/host/child.h"
#include "tools/rocefs/host/description.h"
#include "tools/rocefs/host/machine.h"

namespace rocefs {
namespace {

// Continues as the engine's user, who then owns the hosts' user namespace and can join it.
Result<void> become(const ucred& user) {
  if (user.uid == ::geteuid()) return {};
  if (::setgroups(0, nullptr) != 0 || ::setresgid(user.gid, user.gid, user.gid) != 0 ||
      ::setresuid(user.uid, user.uid, user.uid) != 0) {
    return errorf(errno, "cannot become user {}: {}", user.uid, std::strerror(errno));
  }
  // The change made /proc/self root's; uid_map is written there.
  ::prctl(PR_SET_DUMPABLE, 1);
  return {};
}

// Gets the rights to make namespaces, by a user namespace if need be.
Result<void> get_rights(const ucred& engine) {
  if (::geteuid() == 0) {
    if (Result<void> changed = become(engine); !changed) return changed;
  }
  if (::unshare(CLONE_NEWNET) == 0) return {};
  if (errno != EPERM) return errorf(errno, "a network namespace: {}", std::strerror(errno));
  return enter_user_namespace();
}

Result<void> make_all(const std::string& mount_point, const std::string& wanted,
                      HostSession& session) {
  Result<std::vector<HostDescription>> all = read_hosts(mount_point);
  if (!all) return all.error();
  if (Result<void> rights = get_rights(session.engine()); !rights) return rights;
  Result<Fd> parking = open_parking();
  if (!parking) return parking.error();
  std::vector<const HostDescription*> order;
  for (const HostDescription& host : *all) {
    if (!host.running) order.push_back(&host);
  }
  std::stable_partition(order.begin(), order.end(),
                        [&](const HostDescription* host) { return host->name == wanted; });
  for (const HostDescription* host : order) {
    Result<void> made = in_child(
        [&] { return make_machine(mount_point, *host, *all, -1, parking->get(), session); });
    if (!made) return errorf(made.error().code, "{}: {}", host->name, made.error().reason);
  }
  return {};
}

Result<void> make_one(const std::string& mount_point, const std::string& name, int network,
                      HostSession& session) {
  Result<std::vector<HostDescription>> all = read_hosts(mount_point);
  if (!all) return all.error();
  Result<const HostDescription*> host = find_host(*all, name, mount_point);
  if (!host) return host.error();
  return make_machine(mount_point, **host, *all, network, -1, session);
}

}  // namespace

Result<void> check_host(const std::string& mount_point, const std::string& name) {
  Result<std::vector<HostDescription>> hosts = read_hosts(mount_point);
  if (!hosts) return hosts.error();
  Result<const HostDescription*> host = find_host(*hosts, name, mount_point);
  if (!host) return host.error();
  return {};
}

Result<void> check_network(int network) {
  return in_child([&] { return join_network(network); });
}

Result<void> make_host_in(const std::string& mount_point, const std::string& name, int network,
                          HostSession& session) {
  Result<void> done = session.give(ROCEFS_HOST_ATTACH, name, 0, network);
  if (done) done = in_child([&] { return make_one(mount_point, name, network, session); });
  if (!done) return done;
  return session.give(ROCEFS_HOST_MADE, "", 0, -1);
}

Result<void> make_hosts(const std::string& mount_point, const std::string& wanted,
                        HostSession& session) {
  Result<void> made = in_child([&] { return make_all(mount_point, wanted, session); });
  Result<void> told = session.give(ROCEFS_HOST_MADE, "", 0, -1);
  return made ? told : made;
}

}  // namespace rocefs
