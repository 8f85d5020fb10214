// kernel/debug/rocefs/hosts/NAME/processes: the processes in the network namespace of a host.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/loop/engine.h"
#include "core/loop/worker.h"
#include "core/tree/file.h"

namespace rocefs {

// Returns the processes whose network namespace has this name (net:[INODE]), one a line, lowest
// first; those that the caller may not look at are left out. Reads /proc, may take milliseconds.
std::string processes_in(const std::string& network);

// Control thread. The worker walks /proc; reads that come meanwhile get the result of the walk that
// follows, so that many readers cost no more than one.
class ProcessesFile final : public Stream, public std::enable_shared_from_this<ProcessesFile> {
 public:
  // Returns the name of the namespace; empty: there is none.
  using Network = std::function<std::string()>;
  // References, and what `network` refers to, outlive the file.
  ProcessesFile(Engine& engine, Worker& worker, Network network)
      : engine_(engine), worker_(worker), network_(std::move(network)) {}

  void content(Answer<std::string> answer) override;
  FileDoc doc() const override {
    return {"value", {}, {}, "processes that run on the host now: their pids, one a line"};
  }

 private:
  void walk();

  Engine& engine_;
  Worker& worker_;
  const Network network_;
  std::vector<Answer<std::string>> waiting_;
  bool walking_ = false;
};

}  // namespace rocefs
