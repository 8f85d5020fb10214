// Traffic: the directory in which flows are started by echo and watched by cat.
//
//   echo "f1 write mb_0 mb_1 size=64K count=100" > traffic/start
//   cat traffic/f1/state traffic/f1/result; echo 1 > traffic/f1/stop
//
// RemoteTraffic has the flows whose other end is in another mount.
//
// Control thread; the flows themselves belong to the core thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/loop/engine.h"
#include "core/loop/poll_loop.h"
#include "core/tree/caller_file.h"
#include "core/tree/file.h"
#include "core/tree/tree.h"
#include "rdma/network/fabric.h"
#include "rdma/traffic/flow.h"
#include "rdma/traffic/flow_entry.h"
#include "rdma/traffic/remote_traffic.h"

namespace rocefs {

class Traffic final : private FlowBook {
 public:
  // All of these outlive the engine's thread.
  struct Parts {
    Engine& engine;
    Fabric& fabric;
    Tree& tree;
    CallerFiles& files;
    PollLoop& loop;
    std::string directory;  // in the tree
    // Shows a warning to the mount's users.
    std::function<void(const std::string&)> warn;
  };

  explicit Traffic(Parts parts);
  ~Traffic();
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  // Removes every flow that has been started by now, in three steps: the first and the last on the
  // control thread, stop_all() on the core thread. An output that is being written is finished.
  void begin_reset();
  void stop_all();
  void finish_reset();

  // FlowRun::account() of all flows that have files. Core thread, while the control thread waits.
  void account();

 private:
  void start(std::string_view line, const OperationPtr& operation, Answer<void> answer);
  struct Loading;
  void load_files(const FlowEntryPtr& entry, const OperationPtr& operation, Answer<void> answer);
  void load_input(const std::shared_ptr<Loading>& loading);
  void open_output(const std::shared_ptr<Loading>& loading);
  void launch(const FlowEntryPtr& entry, std::shared_ptr<LocalMemory> input, Answer<void> answer);
  void launch_here(const FlowEntryPtr& entry, std::shared_ptr<LocalMemory> input,
                   Answer<void> answer);
  // Work of the packet core on which the flow runs.
  Outstanding& outstanding(const FlowEntry& entry);
  FlowEntryPtr find(std::string_view name) const override;
  void add(const FlowEntryPtr& entry) override;
  void add_directory(const FlowEntryPtr& entry) override;
  void ended(const FlowEntryPtr& entry, std::shared_ptr<LocalMemory> received,
             Result<void> result) override;
  void save(const FlowEntryPtr& entry, std::shared_ptr<LocalMemory> received);
  void settle(const FlowEntryPtr& entry, Result<void> result);
  void release(const FlowEntryPtr& entry);
  static void end_on_core(FlowEntry& entry);
  void stop(const FlowEntryPtr& entry, Answer<void> answer);
  static void hang_up(FlowEntry& entry, const std::string& why);
  void forget(const FlowEntryPtr& entry) override;

  Parts parts_;
  std::map<std::string, FlowEntryPtr, std::less<>> entries_;
  std::vector<std::weak_ptr<FlowEntry>> known_;  // forgotten ones too
  size_t prune_known_at_ = 16;                   // size at which the list is cleaned
  std::vector<FlowEntryPtr> leaving_;            // during a reset
  RemoteTraffic remote_;
};

}  // namespace rocefs
