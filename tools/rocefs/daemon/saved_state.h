// SavedState: the state that outlives a worker, in the journal's memory that the supervisor holds.
#pragma once

#include <sys/types.h>

#include <climits>

#include "core/loop/engine.h"
#include "core/takeover/fault.h"
#include "core/tree/clock_files.h"
#include "core/tree/dmesg.h"
#include "core/tree/tree_keeper.h"
#include "fs/saved_session.h"
#include "pcc/card/pcc.h"
#include "rdma/tree/pci_driver.h"
#include "rdma/uplink/uplink_addresses.h"

namespace rocefs {

// Engine time and the monotonic clock (CLOCK_MONOTONIC) at one moment; for the real clock.
struct SavedClock {
  TimeNs engine, monotonic;
  uint64_t dilation;
};

// Written by the supervisor.
struct WorkerDeath {
  pid_t pid;
  TimeNs monotonic;
  char cause[64];
};

struct SavedState {
  // Size of the largest transaction: a store of all settings with its effects.
  static constexpr size_t kRecordSize = SavedTree::kMaxTransaction + 64 * 1024;
  SavedSession session;
  SavedTree tree;
  Dmesg::Saved log;
  SavedClock clock;
  SavedTime time;
  SavedStores stores;
  PciDriver::Unbound unbound;
  Pcc::HostModes host_modes;
  FaultState faults;
  SavedAddresses uplink_addresses;  // written once, before mounting
  WorkerDeath death;
  char mount_point[PATH_MAX];
};

}  // namespace rocefs
