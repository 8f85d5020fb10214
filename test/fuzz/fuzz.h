// A target takes any bytes and comes back. It is run by libFuzzer (make fuzz), and over its corpus
// by a program of its own (make test).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace rocefs::fuzz {

// What must hold whatever the bytes are.
inline void require(bool held) {
  if (!held) std::abort();
}

}  // namespace rocefs::fuzz
