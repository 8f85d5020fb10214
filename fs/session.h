// Session: serves a Tree through FUSE. It lives on the control thread's loop: requests are read
// when the descriptor is readable, files answer at once or later, and no handler waits.
//
// Semantics are those of sysfs, as far as FUSE can give them: direct I/O, errors from write(2),
// sizes that never change, stable inode numbers.
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
  // EINVAL for a mount option that nobody knows.
  static Result<std::unique_ptr<Session>> create(SessionOptions options, Tree& tree,
                                                 PollLoop& loop);
  // Unmounts. Whoever still waits for an answer gets EIO; the answer may come later and is dropped.
  ~Session();

  // Mounts and serves from now on, whenever the loop runs.
  Result<void> mount(const std::string& mount_point);
  // In place of mount(), in another process: goes on where the session ended that left `saved` with
  // the journal, whose /dev/fuse descriptor this is. What was open is opened again; a file that is
  // no longer there answers ENODEV.
  Result<TakenOver> take_over(const std::string& mount_point, int descriptor);
  // The /dev/fuse descriptor; -1 before mount().
  int descriptor() const;
  // What stat(2) shows as the device of the files; nothing before mount(), or if the mount table
  // does not show the mount.
  std::optional<dev_t> device() const;
  // Makes a socket at `path` in the tree, to which clients connect(2) through any mount of it, and
  // answers with it; see SocketBinder. The node stays when the socket is closed. One at a time,
  // after mount(); a session that takes over finds what it needs in the tree.
  void listen_at(const std::string& path, Answer<Fd> done);

 private:
  explicit Session(std::unique_ptr<FuseServer> server);
  std::unique_ptr<FuseServer> server_;
};

}  // namespace rocefs
