#include "core/process_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "core/part_walk.h"

namespace rocefs {
namespace {

// The kernel moves a page at a time: what begins at one costs least.
constexpr size_t kMemoryPage = 4096;
// Small parts that follow each other are cheaper to move at once and to copy here.
constexpr size_t kLumpBytes = 128 * 1024;
constexpr size_t kSmallPart = 16 * 1024;

// A line of /proc/PID/maps: `55d0c000-55d0e000 rw-p ...`.
struct MappedLine {
  uint64_t begin = 0, end = 0;
  bool readable = false, writable = false;
};
bool parse_mapped(std::string_view line, MappedLine& out) {
  const char* last = line.data() + line.size();
  auto [dash, first] = std::from_chars(line.data(), last, out.begin, 16);
  if (first != std::errc() || dash == last || *dash != '-') return false;
  auto [space, second] = std::from_chars(dash + 1, last, out.end, 16);
  if (second != std::errc() || last - space < 3) return false;
  out.readable = space[1] == 'r';
  out.writable = space[2] == 'w';
  return true;
}

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
  return ProcessMemory(std::move(memory), std::move(maps));
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

// Splits what is longer than a page at the first page boundary.
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
  if (length == 0) return true;
  if (::lseek(maps_.get(), 0, SEEK_SET) != 0) return false;
  const uint64_t end = address + length;
  std::array<char, 16384> text;
  for (size_t kept = 0;;) {
    ssize_t got = ::read(maps_.get(), text.data() + kept, text.size() - kept);
    if (got <= 0) return false;
    std::string_view lines(text.data(), kept + static_cast<size_t>(got));
    for (size_t stop; (stop = lines.find('\n')) != lines.npos; lines.remove_prefix(stop + 1)) {
      MappedLine mapped;
      if (!parse_mapped(lines.substr(0, stop), mapped)) return false;
      if (mapped.end <= address) continue;
      bool allowed = mapped.readable && (mapped.writable || !writes);
      if (mapped.begin > address || !allowed) return false;
      address = mapped.end;
      if (address >= end) return true;
    }
    kept = lines.size();
    if (kept == text.size()) return false;
    std::memmove(text.data(), lines.data(), kept);
  }
}

}  // namespace rocefs
