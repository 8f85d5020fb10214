// FileAgent: the process that forks a FileHelper for each path, and kills those that are no longer
// needed. Single-threaded; opens no file of a user, and waits for no process that does.
#pragma once

#include <sys/types.h>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace rocefs {

// Message to the agent for each path, with the helper's descriptors: its socket, its memory, and
// the writer's root and working directory if they are known.
struct AgentOrder {
  uid_t uid;
};

class FileAgent {
 public:
  // Forks the agent, which ends with the calling thread.
  static Result<FileAgent> start();
  FileAgent(FileAgent&&) = default;
  FileAgent& operator=(FileAgent&&) = delete;
  // Kills the agent and its helpers.
  ~FileAgent();

  // Readable once the agent has ended.
  int descriptor() const { return socket_.get(); }
  pid_t pid() const { return pid_; }
  // Never waits. Returns 0 or an errno: EAGAIN while too many orders are queued.
  int send(const AgentOrder& order, int socket, int memory, int root, int directory);

 private:
  FileAgent(Fd socket, pid_t pid) : socket_(std::move(socket)), pid_(pid) {}

  Fd socket_;
  pid_t pid_;
};

}  // namespace rocefs
