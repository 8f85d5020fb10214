// SocketBinder: binds a unix socket to a name in a mount that this process serves.
//
// bind(2) makes the kernel ask the server of the mount for the node (FUSE_MKNOD), so a child
// process calls it while this one serves. The socket holds the mount through which it was bound
// (net/unix/af_unix.c, unix_bind_bsd()): if it were the visible mount, umount(2) would be refused
// while the socket is open. The child therefore clones the mount without attaching it, for which it
// needs a mount namespace where it has no privilege. Clients find the socket by its inode, through
// any mount.
//
// The clone lives as long as the socket, and the file system as long as the clone: the owner of the
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

// Loop's thread.
class SocketBinder {
 public:
  // Starts to bind a listening SOCK_SEQPACKET socket at `path`, relative to the mount. `done` gets
  // it, non-blocking, from the loop, or the reason of the failure: no user namespaces, no right to
  // write to the directory.
  SocketBinder(std::string mount_point, std::string path, PollLoop& loop, Answer<Fd> done);
  // Ends the operation in progress; the connection must have ended before.
  ~SocketBinder();
  SocketBinder(const SocketBinder&) = delete;
  SocketBinder& operator=(const SocketBinder&) = delete;

  // Returns whether this is the mknod(2) of our child.
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
  std::string said_;  // octets of the answer so far
  pid_t child_ = 0;
};

}  // namespace rocefs
