// Loads: the directory of a mount in which loads are started by echo and watched by cat.
//
//   echo "web pattern=poisson load=0.3 cdf=websearch until=10ms" > loads/start
//   cat loads/web/state loads/web/result; echo 1 > loads/web/stop
//
// Control thread; the loads themselves belong to the core thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/loop/engine.h"
#include "core/tree/file.h"
#include "core/tree/tree.h"
#include "rdma/network/fabric.h"
#include "rdma/workload/load_progress.h"
#include "rdma/workload/load_spec.h"

namespace rocefs {

class Loads {
 public:
  static constexpr size_t kMaxLoads = 32;             // those that have ended count, too
  static constexpr uint64_t kMaxRunningFlows = 4096;  // of a load

  // All of these outlive the engine's thread.
  struct Parts {
    Engine& engine;
    Fabric& fabric;
    Tree& tree;
    std::string directory;  // in the tree
  };

  explicit Loads(Parts parts);
  // The engine has stopped.
  ~Loads();
  Loads(const Loads&) = delete;
  Loads& operator=(const Loads&) = delete;

  // Removes every load that has been started by now, in three steps: the first and the last on the
  // control thread, stop_all() on the core thread.
  void begin_reset();
  void stop_all();
  void finish_reset();

 private:
  class Run;
  class ResultFile;
  enum class State : uint8_t { kRunning, kDone, kStopped };
  struct Entry {
    uint64_t id = 0;
    State state = State::kRunning;
    bool shown = false;  // there is a directory
    std::shared_ptr<Attribute> state_file = nullptr;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  void start(std::string_view line, const OperationPtr& operation, Answer<void> answer);
  Result<void> begin_on_core(uint64_t id, LoadSpec spec, QpOwner owner);
  void end_on_core(uint64_t id);
  void over_on_core(uint64_t id);
  std::vector<LoadHost> hosts() const;
  Entry* find(std::string_view name, uint64_t id);
  void add_directory(const std::string& name, Entry& entry);
  void become(const std::string& name, uint64_t id, State state);
  void stop(const std::string& name, uint64_t id, Answer<void> answer);
  void forget(const std::string& name, uint64_t id);

  Parts parts_;
  Entries entries_;
  uint64_t last_id_ = 0;
  std::vector<std::pair<std::string, uint64_t>> leaving_;  // during a reset
  std::map<uint64_t, std::unique_ptr<Run>> runs_;          // core thread: by the entry's id
};

}  // namespace rocefs
