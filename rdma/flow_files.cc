#include "rdma/flow_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rdma/flow_plan.h"

namespace rocefs {

Result<std::shared_ptr<LocalMemory>> read_input(int fd, const std::string& path,
                                                const std::atomic<bool>& cancelled) {
  struct stat status;
  if (::fstat(fd, &status) != 0) return errorf(errno, "{}: {}", path, std::strerror(errno));
  auto size = static_cast<uint64_t>(status.st_size);
  if (size > kMaxFlowMemory) {
    return errorf(EFBIG, "{}: {} bytes, more than {}", path, size, kMaxFlowMemory);
  }
  // As in /proc: what cannot tell its size would pass for an empty file.
  uint8_t octet;
  if (size == 0 && ::pread(fd, &octet, 1, 0) > 0) {
    return errorf(EINVAL, "{}: says that it is 0 bytes long, and is longer", path);
  }
  std::shared_ptr<LocalMemory> memory = LocalMemory::create(size);
  if (!memory) return errorf(ENOMEM, "{}: no memory for {} bytes", path, size);
  constexpr size_t kChunk = 1 << 20;
  for (uint64_t at = 0; at < size;) {
    if (cancelled.load()) return Error{EINTR, "interrupted"};
    std::span<uint8_t> rest = memory->bytes().subspan(at);
    ssize_t got = ::pread(fd, rest.data(), std::min(rest.size(), kChunk), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errorf(errno, "{}: {}", path, std::strerror(errno));
    if (got == 0) return errorf(EIO, "{}: became shorter while it was read", path);
    at += static_cast<uint64_t>(got);
  }
  return memory;
}

// What the file held before goes only now that there is something to take its place.
Result<void> write_all(int fd, std::span<const uint8_t> bytes, const std::string& path) {
  if (::ftruncate(fd, 0) != 0) return errorf(errno, "{}: {}", path, std::strerror(errno));
  for (size_t at = 0; at < bytes.size();) {
    ssize_t put = ::pwrite(fd, bytes.data() + at, std::min<size_t>(bytes.size() - at, 1 << 20),
                           static_cast<off_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return errorf(errno, "{}: {}", path, std::strerror(errno));
    at += static_cast<size_t>(put);
  }
  return {};
}

}  // namespace rocefs
