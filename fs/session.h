// Session: serves a Tree through FUSE on the control thread's loop. Reads requests when the
// descriptor is readable; files answer at once or later, and no handler waits.
//
// Semantics of sysfs, as far as FUSE allows: direct I/O, errors from write(2), sizes that never
// change, stable inode numbers.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/loop/poll_loop.h"
#include "core/tree/file.h"
#include "core/tree/tree.h"
#include "fs/session_options.h"

namespace rocefs {

class FuseServer;

class Session {
 public:
  // Fails with EINVAL for an unknown mount option.
  static Result<std::unique_ptr<Session>> create(SessionOptions options, Tree& tree,
                                                 PollLoop& loop);
  // Unmounts. Unanswered requests get EIO; their answers are dropped when they come.
  ~Session();

  // Mounts, and serves whenever the loop runs.
  Result<void> mount(const std::string& mount_point);
  // Continues, in another process and in place of mount(), the session that left `saved` with the
  // journal; `descriptor` is its /dev/fuse. Opens its files again; a file that no longer exists
  // answers ENODEV.
  Result<TakenOver> take_over(const std::string& mount_point, int descriptor);
  // Returns the /dev/fuse descriptor; -1 before mount().
  int descriptor() const;
  // Returns the device number of the files in stat(2); nothing before mount(), or if the mount is
  // not in the mount table.
  std::optional<dev_t> device() const;
  // Makes a socket at `path` in the tree, to which clients connect(2) through any mount of it, and
  // returns it by `done`; see SocketBinder. The node stays when the socket is closed. One at a
  // time, after mount(); a session that takes over finds the node in the tree.
  void listen_at(const std::string& path, Answer<Fd> done);

 private:
  explicit Session(std::unique_ptr<FuseServer> server);
  std::unique_ptr<FuseServer> server_;
};

}  // namespace rocefs
