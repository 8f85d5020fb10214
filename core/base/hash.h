// Small non-cryptographic hashes whose values are the same on every machine and in every run.
#pragma once

#include <cstdint>
#include <string_view>

namespace rocefs {

// `hash`: of what stands before `bytes`.
constexpr uint64_t fnv1a64(std::string_view bytes, uint64_t hash = 0xcbf29ce484222325) {
  for (char c : bytes) {
    hash ^= static_cast<uint8_t>(c);
    hash *= 0x100000001b3;
  }
  return hash;
}

}  // namespace rocefs
