// PartWalk: iterates over the bytes of scattered parts of memory.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

namespace rocefs {

class PartWalk {
 public:
  PartWalk() = default;
  explicit PartWalk(std::span<const iovec> parts) : parts_(parts) {}
  // Copies the next `length` bytes to or from `bytes`. The parts must hold as many.
  void copy(bool out, uint8_t* bytes, size_t length) {
    go_on(length, [&](uint8_t* here, size_t some) {
      std::memcpy(out ? bytes : here, out ? here : bytes, some);
      bytes += some;
    });
  }
  void skip(size_t length) {
    go_on(length, [](uint8_t*, size_t) {});
  }

 private:
  template <class Each>
  void go_on(size_t length, Each each) {
    while (length > 0) {
      const iovec& part = parts_[0];
      size_t some = std::min(length, part.iov_len - at_);
      each(static_cast<uint8_t*>(part.iov_base) + at_, some);
      length -= some;
      at_ += some;
      if (at_ < part.iov_len) continue;
      parts_ = parts_.subspan(1);
      at_ = 0;
    }
  }

  std::span<const iovec> parts_;
  size_t at_ = 0;
};

}  // namespace rocefs
