#include "core/process/process_maps.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

namespace rocefs {
namespace {

// PROCMAP_QUERY of <linux/fs.h>, which older headers do not have.
struct MapsQuery {
  uint64_t size, flags, address;    // asked
  uint64_t begin, end, protection;  // told
  uint64_t page_size, offset, inode;
  uint32_t device_major, device_minor;
  uint32_t name_size, build_id_size;
  uint64_t name, build_id;
};
static_assert(sizeof(MapsQuery) == 104);
constexpr unsigned long kQuery = _IOWR('f', 17, MapsQuery);
constexpr uint64_t kReadable = 1, kWritable = 2;  // PROCMAP_QUERY_VMA_*

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

bool ProcessMaps::allow(uint64_t address, uint64_t length, bool writes) const {
  std::optional<bool> told = ask(address, length, writes);
  return told ? *told : read(address, length, writes);
}

std::optional<bool> ProcessMaps::ask(uint64_t address, uint64_t length, bool writes) const {
  const uint64_t end = address + length;
  const uint64_t needed = kReadable | (writes ? kWritable : 0);
  while (address < end) {
    MapsQuery query{};
    query.size = sizeof query;
    query.address = address;
    if (::ioctl(maps_.get(), kQuery, &query) != 0) {
      bool none = errno == ENOENT || errno == ESRCH;  // no mapping there, or no process
      return none ? std::optional(false) : std::nullopt;
    }
    if ((query.protection & needed) != needed) return false;
    address = query.end;
  }
  return true;
}

bool ProcessMaps::read(uint64_t address, uint64_t length, bool writes) const {
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
