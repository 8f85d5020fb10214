// FileHelper: the process that opens one path as its writer would, and reads or writes the file for
// the daemon. A file system that does not answer blocks this process alone.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "core/base/fd.h"

namespace rocefs {

enum class FileUse : uint32_t {
  kRead,       // an existing file
  kWrite,      // an existing or a new file; content stays until kTruncate
  kReplace,    // the same, truncated
  kDirectory,  // checks that it is a directory: nothing is opened
};

// Header of the memory that daemon and helper share. Then follow `group_count` groups, the path
// and, from file_content_at() on, room for the file's content.
struct FileRequest {
  FileUse use;
  uid_t uid;
  gid_t gid;
  uint32_t group_count;
  uint64_t capabilities;
  dev_t own_mount;
  uint32_t path_size;
  bool daemon, placed, elsewhere, has_own_mount;
  char reason[8192];  // the helper's, with a NUL
};

// Where in the memory the content begins.
constexpr size_t file_content_at(size_t group_count, size_t path_size) {
  constexpr size_t kPage = 4096;
  size_t used = sizeof(FileRequest) + group_count * sizeof(gid_t) + path_size;
  return (used + kPage - 1) / kPage * kPage;
}

// Each order, and the opening before them, is answered once, in order, by a FileReply.
struct FileOrder {
  enum What : uint32_t { kRead, kWrite, kTruncate, kClose } what;
  uint64_t memory, size;  // where in the shared memory
  uint64_t offset;        // in the file
};

struct FileReply {
  // Why there is no file; kReason: the text is in the request.
  enum Why : uint32_t { kNone, kReason, kTooMany, kStuck, kNoProcess };
  int32_t code;  // an errno, or 0
  Why why;
  uint64_t value;  // the file's size, or how many octets were moved
};

// The helper's main function; `root` and `directory` are those of Identity. The helper ends with
// `agent`, its parent.
[[noreturn]] void help_with_file(Fd socket, Fd memory, Fd root, Fd directory, pid_t agent);

}  // namespace rocefs
