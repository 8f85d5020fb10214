// FlowEntry: one flow as its directory shows it, from the store or the other mount's offer that
// begins it to the removal of the directory. FlowBook: where entries are kept.
//
// Control thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/tree/caller_file.h"
#include "core/tree/file.h"
#include "rdma/traffic/flow_run.h"
#include "rdma/traffic/flow_state.h"
#include "rdma/traffic/rendezvous_line.h"

namespace rocefs {

// A far end's part of this mount.
struct FlowNeed {
  uint64_t qps = 0;
  uint64_t bytes = 0;
};

class FlowEntry {
 public:
  FlowState state() const { return state_; }
  // As the file shows it.
  std::string state_text() const;
  bool live() const { return row_of(state_).live; }
  bool writing() const { return state_ == FlowState::kWriting; }
  // Wakes pollers of the file where its text changes. `reason`: of kFailed.
  void become(FlowState next, std::string reason = {});

  FlowSpec spec;
  QpOwner owner;
  std::weak_ptr<Attribute> state_file;  // while there is a directory
  std::shared_ptr<FlowStats> stats = std::make_shared<FlowStats>();
  CallerFilePtr output;           // dropped on the control thread, before the entry
  bool shown = false;             // there is a directory
  std::shared_ptr<FlowRun> flow;  // core thread
  bool settling = false;          // core thread: counted in Outstanding::settling
  bool over = false;              // core thread: no flow may begin any more

  // With another mount:
  std::shared_ptr<LocalMemory> input;  // while the flow waits
  RendezvousLinePtr line;
  std::string peer;
  bool offered = false;  // begun by the other mount alone, nobody here has asked for it
  FlowNeed need;         // of the far end
  // Called once, when the flow is over and its output written.
  UniqueFunction<void(const Result<void>&)> settled;

 private:
  FlowState state_ = FlowState::kLoading;
  std::string reason_;
};
using FlowEntryPtr = std::shared_ptr<FlowEntry>;

class FlowBook {
 public:
  // Null if there is none.
  virtual FlowEntryPtr find(std::string_view name) const = 0;
  // The entry's name is free.
  virtual void add(const FlowEntryPtr& entry) = 0;
  virtual void add_directory(const FlowEntryPtr& entry) = 0;
  // The flow is over on the core's side; `received` goes to its output.
  virtual void ended(const FlowEntryPtr& entry, std::shared_ptr<LocalMemory> received,
                     Result<void> result) = 0;
  // Removes the entry, its directory, and its flow on the core's side.
  virtual void forget(const FlowEntryPtr& entry) = 0;

 protected:
  ~FlowBook() = default;
};

}  // namespace rocefs
