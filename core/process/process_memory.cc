#include "core/process/process_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/base/part_walk.h"

namespace rocefs {
namespace {

// The kernel moves a page at a time: an aligned start costs least.
constexpr size_t kMemoryPage = 4096;
// Small contiguous parts are moved at once and copied here: that costs less.
constexpr size_t kLumpBytes = 128 * 1024;
constexpr size_t kSmallPart = 16 * 1024;

}  // namespace

Fd open_process(pid_t pid) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d", pid);
  return Fd(::open(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
}

Result<ProcessMemory> ProcessMemory::open(const Fd& directory) {
  Fd memory(::openat(directory.get(), "mem", O_RDWR | O_CLOEXEC));
  Fd maps(memory ? ::openat(directory.get(), "maps", O_RDONLY | O_CLOEXEC) : -1);
  if (!maps) return errorf(errno, "the memory of the process: {}", std::strerror(errno));
  return ProcessMemory(std::move(memory), ProcessMaps(std::move(maps)));
}

bool ProcessMemory::read(uint64_t address, std::span<const iovec> into) const {
  return move(false, address, into);
}

bool ProcessMemory::write(uint64_t address, std::span<const iovec> from) const {
  return move(true, address, from);
}

bool ProcessMemory::move(bool out, uint64_t address, std::span<const iovec> parts) const {
  size_t left = 0;
  for (const iovec& part : parts) left += part.iov_len;
  if (parts.size() < 2 || left / parts.size() >= kSmallPart) {
    for (const iovec& part : parts) {
      if (!whole(out, address, static_cast<uint8_t*>(part.iov_base), part.iov_len)) return false;
      address += part.iov_len;
    }
    return true;
  }
  if (!lump_) lump_.reset(new uint8_t[kLumpBytes]);
  for (PartWalk walk(parts); left > 0;) {
    size_t some = std::min(left, kLumpBytes - address % kMemoryPage);
    if (out) walk.copy(out, lump_.get(), some);
    if (!whole(out, address, lump_.get(), some)) return false;
    if (!out) walk.copy(out, lump_.get(), some);
    address += some;
    left -= some;
  }
  return true;
}

// Splits a part longer than a page at the first page boundary.
bool ProcessMemory::whole(bool out, uint64_t address, uint8_t* bytes, size_t length) const {
  size_t first = kMemoryPage - address % kMemoryPage;
  size_t some = length > kMemoryPage ? first : length;
  while (length > 0) {
    auto at = static_cast<off_t>(address);
    ssize_t moved =
        out ? ::pwrite(memory_.get(), bytes, some, at) : ::pread(memory_.get(), bytes, some, at);
    if (moved <= 0) return false;
    auto done = static_cast<size_t>(moved);
    address += done;
    bytes += done;
    length -= done;
    some = length;
  }
  return true;
}

bool ProcessMemory::allows(uint64_t address, uint64_t length, bool writes) const {
  return maps_.allow(address, length, writes);
}

}  // namespace rocefs
