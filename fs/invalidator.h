// Invalidator: a process that passes notifications on to the kernel.
//
// The kernel takes the directory's lock for them (fs/fuse/dir.c, fuse_reverse_inval_entry()) and no
// signal ends that wait, while whoever holds the lock waits for the server of the mount to answer a
// lookup. A thread of the server that waits there when the server is killed keeps it from dying,
// and nobody could take its place. This process holds nothing that a successor needs; the
// successor's answers set it free, and it ends when nobody speaks to it any more.
#pragma once

#include <sys/types.h>

#include <string_view>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace rocefs {

class Invalidator {
 public:
  static constexpr size_t kMaxSize = 512;  // of what is sent at once

  // Forks: best before there are threads and memory that the two would share. Its name is
  // rocefs-notifier.
  static Result<Invalidator> start();
  Invalidator() = default;
  Invalidator(Invalidator&& other) noexcept { *this = std::move(other); }
  Invalidator& operator=(Invalidator&& other) noexcept;
  // Ends it, and waits for that as long as it can be a matter of moments: it may still wait for the
  // lock.
  ~Invalidator();

  // Where notifications go from now on.
  bool use(int connection);
  // Notifications one after the other, each with its fuse_out_header, which says its length. False
  // when there is no room now, or nobody.
  bool send(std::string_view notifications);
  // For each send() a byte comes when the kernel has taken it all; hung up when the process has
  // died.
  int socket() const { return socket_.get(); }
  explicit operator bool() const { return static_cast<bool>(socket_); }

 private:
  Invalidator(Fd socket, pid_t process) : socket_(std::move(socket)), process_(process) {}

  Fd socket_;
  pid_t process_ = 0;
};

}  // namespace rocefs
