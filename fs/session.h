// Session: serves a Tree through FUSE. It lives on the control thread's loop: requests are read
// when the descriptor is readable, files answer at once or later, and no handler waits.
//
// Semantics are those of sysfs, as far as FUSE can give them: direct I/O, errors from write(2),
// sizes that never change, stable inode numbers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/loop/poll_loop.h"
#include "core/takeover/fault.h"
#include "core/takeover/journal.h"
#include "core/tree/file.h"
#include "core/tree/tree.h"
#include "fs/invalidator.h"

namespace rocefs {

struct SavedSession;

struct SessionOptions {
  std::string source = "rocefs";           // what mount(8) shows as the device
  std::vector<std::string> mount_options;  // for libfuse and the kernel: allow_other, ro, dev, …
  bool debug = false;                      // print every request to stderr
  // A write that was refused, or an open for writing that the file itself refused: so that the
  // reason can be logged, before the caller sees the errno. Control thread.
  std::function<void(const std::string& path, const Error& why)> refused;
  // A write that was accepted; the mode, owner or date of a node was changed. Control thread,
  // before the caller has the answer.
  std::function<void(const std::string&path)> stored, attributes_changed;
  // A write that was accepted, told by the file before the caller sees its end; see Operation.
  // Control thread.
  std::function<void(const std::string& path, std::string_view text, const Caller& caller,
                     std::optional<Moment> applied)>
      accepted;
  // The mount is gone (fusermount3 -u, umount). Control thread.
  std::function<void()> unmounted;
  // What a session leaves to another process; both or none. They outlive the session.
  Journal* journal = nullptr;
  SavedSession* saved = nullptr;
  Faults* faults = nullptr;  // for tests
  Invalidator invalidator;   // without one, the session starts its own
};

// What take_over() found.
struct TakenOver {
  size_t in_flight = 0;  // requests that were taken and not answered
  bool resent = false;   // they come again; if not, they have ended with EIO
  size_t open_files = 0;
};

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

  class Impl;

 private:
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rocefs
