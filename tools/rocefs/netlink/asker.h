// Asker: a process whose system call waits for an answer: its memory, descriptors and files.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/fd.h"

namespace rocefs {

class Asker {
 public:
  // `thread`: its TID.
  explicit Asker(pid_t thread) : thread_(thread) {}

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
  std::string link(int descriptor) const;
  std::string status_line(const std::string& key) const;

  pid_t thread_;
};

}  // namespace rocefs
