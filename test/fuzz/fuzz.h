// A target takes any bytes and returns. Run by libFuzzer (make fuzz), and over its corpus by a
// separate program (make test).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace rocefs::fuzz {

// Asserts an invariant.
inline void require(bool held) {
  if (!held) std::abort();
}

}  // namespace rocefs::fuzz
