// SharedMemory: a sealed memfd that another process maps too, or a part of one. Sealed against
// shrinking, so that access never faults (SIGBUS), whatever the other process does.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace rocefs {

class SharedMemory {
 public:
  enum class Others { kWrite, kRead };  // permission of other processes

  // Zeroed memory. Any thread; ENOMEM or EMFILE.
  static Result<SharedMemory> create(const char* name, size_t size, Others others);
  // A memfd for many parts, not mapped: pages take memory once they are written to. Any thread.
  static Result<Fd> create_file(const char* name, size_t size);
  // Maps whole pages of such a memfd. Any thread; ENOMEM.
  static Result<SharedMemory> map_part(const Fd& file, size_t offset, size_t size);
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept { *this = std::move(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~SharedMemory();

  // -1 after close_descriptor(), and of a part.
  int descriptor() const { return fd_.get(); }
  // Keeps the mapping.
  void close_descriptor() { fd_.reset(); }
  size_t size() const { return bytes_.size(); }
  uint8_t* data() const { return bytes_.data(); }
  template <class T>
  T* at(size_t offset) const {
    return reinterpret_cast<T*>(bytes_.data() + offset);
  }

 private:
  Fd fd_;
  std::span<uint8_t> bytes_;
};

}  // namespace rocefs
