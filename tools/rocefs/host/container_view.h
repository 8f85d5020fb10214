// ContainerView: the devices of a host in the mount namespace of a container that runs, for all of
// its programs:
//
//   /sys and /dev/infiniband   with the host's devices, as under `rocefs host`
//   /dev/rocefs/mount          the mount
//   /dev/rocefs/lib            the provider, which /etc/libibverbs.d names to libibverbs
//   /etc/hosts                 the container's, with the names of all hosts
//
// Nothing is written into the container's files: each is a mount, and goes with remove_views().
#pragma once

#include <string>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "tools/rocefs/host/description.h"

namespace rocefs {

// Why the mount namespace of a process cannot take the view, as "its /dev is …"; empty if it can.
// `process`: its directory in /proc. EBUSY if another host's view is there.
Result<std::string> reason_against_view(const Fd& process, const std::string& host);

// Lays the view where nothing is against it and none is yet. EPERM without rights in the container;
// then, as after any failure, nothing is laid.
Result<void> lay_view(const Fd& process, const std::string& mount_point,
                      const HostDescription& host, const std::vector<HostDescription>& all);

// Removes the view of a process's mount namespace; no change if there is none.
Result<void> remove_view(const Fd& process);

// Removes the views of all processes in a network namespace, given by an open descriptor.
void remove_views(int network);

}  // namespace rocefs
