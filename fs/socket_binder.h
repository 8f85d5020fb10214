// SocketBinder: gives a unix socket a name in a mount that this process serves.
//
// bind(2) asks the server of the mount for the node (FUSE_MKNOD), so a child process calls it,
// while this one serves. The socket keeps the mount through which it was bound (net/unix/af_unix.c,
// unix_bind_bsd()): by the mount that people see, umount(2) would be refused as long as it is open.
// So the child takes a clone of it that is mounted nowhere, for which it needs a mount namespace of
// its own where it has no privilege. Clients find the socket by its inode, through any mount.
//
// The clone lives as long as the socket, and the file system as long as the clone: whoever has the
// socket closes it when the mount is gone (MountWatch).
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/loop/poll_loop.h"
#include "core/tree/file.h"

namespace rocefs {

// On the loop's thread.
class SocketBinder {
 public:
  // A listening SOCK_SEQPACKET socket at `path`, relative to the mount; `done` has it,
  // non-blocking, when the loop has run for a while, or the reason why there can be none: no user
  // namespaces, no right to write to the directory.
  SocketBinder(std::string mount_point, std::string path, PollLoop& loop, Answer<Fd> done);
  // What is still under way ends; the connection must have ended before.
  ~SocketBinder();
  SocketBinder(const SocketBinder&) = delete;
  SocketBinder& operator=(const SocketBinder&) = delete;

  // Whether this is our child's mknod(2).
  bool asks(pid_t pid, const std::string& path) const { return pid == child_ && path == path_; }

 private:
  void start();
  void hear();
  void finish(Result<Fd> result);

  const std::string mount_point_, path_;
  PollLoop& loop_;
  Answer<Fd> done_;
  Fd socket_;
  Fd report_;         // an Error of the child, or nothing
  std::string said_;  // of that, until now
  pid_t child_ = 0;
};

}  // namespace rocefs
