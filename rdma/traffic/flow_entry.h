// FlowEntry: one flow as its directory shows it, from the store that asked for it, or another
// mount's offer, to the removal of the directory. FlowBook: where they are kept.
//
// On the control thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/tree/caller_file.h"
#include "core/tree/file.h"
#include "rdma/traffic/flow.h"
#include "rdma/traffic/rendezvous_line.h"

namespace rocefs {

// What a far end takes of this mount.
struct FlowNeed {
  uint64_t qps = 0;
  uint64_t bytes = 0;
};

struct FlowEntry {
  FlowSpec spec;
  QpOwner owner;
  // Or done, stopped, failed: REASON; of a flow with another mount first waiting or connecting.
  std::string state = "running";
  std::weak_ptr<Attribute> state_file;  // while it has a directory
  bool live = true;  // the core has a flow, or will have, or its output is being written
  bool writing = false;
  std::shared_ptr<FlowStats> stats = std::make_shared<FlowStats>();
  CallerFilePtr output;           // let go of on the control thread, before the entry
  bool shown = false;             // it has a directory
  std::shared_ptr<FlowRun> flow;  // touched on the core's thread alone
  bool settling = false;          // likewise: it counts among Outstanding::settling
  bool over = false;              // likewise: no flow may begin any more

  // With another mount:
  std::shared_ptr<LocalMemory> input;  // of one that waits
  RendezvousLinePtr line;
  std::string peer;
  bool offered = false;  // by another mount, and nobody here has asked for it
  FlowNeed need;         // of the far end
  // Told once it is over, and its output written.
  UniqueFunction<void(const Result<void>&)> settled;

  // Wakes who polls its state.
  void become(std::string now) {
    state = std::move(now);
    if (auto file = state_file.lock()) file->notify();
  }
};
using FlowEntryPtr = std::shared_ptr<FlowEntry>;

class FlowBook {
 public:
  // Null if there is none.
  virtual FlowEntryPtr find(std::string_view name) const = 0;
  // Its name is free.
  virtual void add(const FlowEntryPtr& entry) = 0;
  virtual void add_directory(const FlowEntryPtr& entry) = 0;
  // The flow is over on the core's side; `received` goes to its output.
  virtual void ended(const FlowEntryPtr& entry, std::shared_ptr<LocalMemory> received,
                     Result<void> result) = 0;
  // Its flow, if there is one, goes on the core's side too.
  virtual void forget(const FlowEntryPtr& entry) = 0;

 protected:
  ~FlowBook() = default;
};

}  // namespace rocefs
