// Invalidator: a separate process that passes notifications on to the kernel.
//
// The kernel takes the directory's lock for them (fs/fuse/dir.c, fuse_reverse_inval_entry()) in an
// uninterruptible wait, while the holder of the lock waits for the server of the mount to answer a
// lookup. A server thread that waits there could not be killed, and no other worker could take
// over. This process holds nothing that a successor needs. The successor's answers release it, and
// it exits when its socket is closed.
#pragma once

#include <sys/types.h>

#include <string_view>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace rocefs {

class Invalidator {
 public:
  static constexpr size_t kMaxSize = 512;  // octets per message

  // Forks the process, named rocefs-notifier: best before there are threads and memory to share.
  static Result<Invalidator> start();
  Invalidator() = default;
  Invalidator(Invalidator&& other) noexcept { *this = std::move(other); }
  Invalidator& operator=(Invalidator&& other) noexcept;
  // Ends the process and waits a moment for its exit; the process may still wait for the lock.
  ~Invalidator();

  // Sets the descriptor for notifications from now on.
  bool use(int connection);
  // Sends a batch of notifications, each with its fuse_out_header, which has its length. Returns
  // false if there is no room now, or no process.
  bool send(std::string_view notifications);
  // Socket: receives one byte for each send() that the kernel has taken completely; hangs up when
  // the process has died.
  int socket() const { return socket_.get(); }
  explicit operator bool() const { return static_cast<bool>(socket_); }

 private:
  Invalidator(Fd socket, pid_t process) : socket_(std::move(socket)), process_(process) {}

  Fd socket_;
  pid_t process_ = 0;
};

}  // namespace rocefs
