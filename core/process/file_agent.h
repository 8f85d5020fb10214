// FileAgent: the process that forks a FileHelper for each path, and kills those that nobody waits
// for any more. It has one thread, touches no file of anybody's, and never waits for one who does.
#pragma once

#include <sys/types.h>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace rocefs {

// What goes to the agent, for each path, with the helper's descriptors: its socket, its memory, and
// the writer's root and directory if they are known.
struct AgentOrder {
  uid_t uid;
};

class FileAgent {
 public:
  // Forks one, which ends with the calling thread.
  static Result<FileAgent> start();
  FileAgent(FileAgent&&) = default;
  FileAgent& operator=(FileAgent&&) = delete;
  // Kills it, and its helpers with it.
  ~FileAgent();

  // Readable once it has ended.
  int descriptor() const { return socket_.get(); }
  pid_t pid() const { return pid_; }
  // Never waits. 0, or an errno: EAGAIN while too many are on their way.
  int send(const AgentOrder& order, int socket, int memory, int root, int directory);

 private:
  FileAgent(Fd socket, pid_t pid) : socket_(std::move(socket)), pid_(pid) {}

  Fd socket_;
  pid_t pid_;
};

}  // namespace rocefs
