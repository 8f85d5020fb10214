// ParameterBlock: one queue pair's copy of an algorithm's parameters, followed by guard words that
// detect a write past its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

namespace rocefs {

class ParameterBlock {
 public:
  explicit ParameterBlock(std::span<const uint8_t> initial)
      : size_(initial.size()),
        memory_(new Unit[(size_ + kGuard + sizeof(Unit) - 1) / sizeof(Unit)]) {
    if (size_ > 0) std::memcpy(data(), initial.data(), size_);
    std::memcpy(data() + size_, kGuardBytes, kGuard);
  }

  // Aligned for any type; never null.
  uint8_t* data() { return reinterpret_cast<uint8_t*>(memory_.get()); }
  bool intact() { return std::memcmp(data() + size_, kGuardBytes, kGuard) == 0; }

 private:
  using Unit = std::max_align_t;
  static constexpr size_t kGuard = 32;
  // Pattern that an algorithm is unlikely to store.
  static constexpr uint8_t kGuardBytes[kGuard + 1] = "\x9d\xb2\xe6\x97 of no parameters; keep out";

  size_t size_;
  std::unique_ptr<Unit[]> memory_;
};

}  // namespace rocefs
