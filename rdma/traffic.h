// Traffic: the directory in which flows are started by echo and watched by cat.
//
//   echo "f1 write mb_0 mb_1 size=64K count=100" > traffic/start
//   cat traffic/f1/state traffic/f1/result; echo 1 > traffic/f1/stop
//
// On the control thread; the flows themselves live on the core's.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/engine.h"
#include "core/fd.h"
#include "core/file.h"
#include "core/tree.h"
#include "core/worker.h"
#include "rdma/fabric.h"
#include "rdma/flow.h"

namespace rocefs {

class Traffic {
 public:
  // What a flow needs of the house. Everything outlives the engine's thread.
  struct House {
    Engine& engine;
    Fabric& fabric;
    Tree& tree;
    Worker& worker;
    std::string directory;  // in the tree
  };

  explicit Traffic(House house);
  ~Traffic();
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  // The device number of the mount itself, on which no input or output may lie.
  void set_own_mount(dev_t device) { own_mount_ = device; }

  // Removes every flow that has been started by now, in three steps: the first and the last on the
  // control thread, stop_all() on the core's. An output that is being written is finished.
  void begin_reset();
  void stop_all();
  void finish_reset();

 private:
  class StateFile;
  class ResultFile;
  struct Entry;
  using EntryPtr = std::shared_ptr<Entry>;

  void start(std::string_view line, const OperationPtr& operation, Answer<void> answer);
  void load_files(const EntryPtr& entry, const OperationPtr& operation, Answer<void> answer);
  void launch(const EntryPtr& entry, std::shared_ptr<LocalMemory> input, Answer<void> answer);
  void add_directory(const EntryPtr& entry);
  void ended(const EntryPtr& entry, std::shared_ptr<LocalMemory> received, Result<void> result);
  void write_output(const EntryPtr& entry, std::shared_ptr<LocalMemory> received);
  void settle(const EntryPtr& entry, Result<void> result);
  void release(const EntryPtr& entry);
  void stop(const EntryPtr& entry, Answer<void> answer);
  void forget(const EntryPtr& entry);

  House house_;
  std::optional<dev_t> own_mount_;
  std::map<std::string, EntryPtr> entries_;
  std::vector<EntryPtr> leaving_;  // while a reset is under way
};

}  // namespace rocefs
