// Asker: the thread whose system call waits for an answer: its memory, descriptors and files.
#pragma once

#include <linux/seccomp.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/fd.h"

namespace rocefs {

// Holds descriptors of /proc instead of a TID, which the next process may get, and asks the kernel
// after each look whether the call still waits (seccomp_unotify(2)): then the TID was the asker's
// all the time. A thread that has gone has no memory, descriptors or files.
class Asker {
 public:
  // `listener`: where the call was notified; not owned.
  Asker(int listener, const seccomp_notif& call);

  // Whether the call still waits, and its thread could be opened.
  explicit operator bool() const { return memory_ && waits(); }

  // False if the memory is not there, or the process has gone.
  bool read(uint64_t address, void* into, size_t size) const;
  bool write(uint64_t address, const void* from, size_t size) const;

  // Number of the socket behind a descriptor in sockfs; 0 if it is no socket.
  uint64_t socket_number(int descriptor) const;
  bool has_descriptor(int descriptor) const;
  // A copy of its descriptor.
  Fd copy(int descriptor) const;
  // The root directory.
  Fd root() const;
  // The file system user and group; nullopt if it has gone.
  struct User {
    uid_t uid;
    gid_t gid;
  };
  std::optional<User> user() const;

 private:
  bool waits() const;
  std::string link(int descriptor) const;
  std::string status_line(const std::string& key) const;

  int listener_;
  uint64_t id_;
  Fd thread_;  // its directory in /proc
  Fd memory_;  // of the program that made the call: not of one that the process becomes by exec
};

}  // namespace rocefs
