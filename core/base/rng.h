// Seeded generators, one per entity, so that the draws of one entity do not shift those of another.
// xoshiro256** seeded through splitmix64, both as published by their authors in the public domain.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/base/hash.h"

namespace rocefs {

class Rng {
 public:
  // The same seed and entity give the same stream on every machine.
  Rng(uint64_t seed, std::string_view entity) {
    uint64_t state = seed ^ fnv1a64(entity);
    for (uint64_t& word : state_) {
      state += 0x9e3779b97f4a7c15;
      uint64_t z = state;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
      word = z ^ (z >> 31);
    }
  }

  uint64_t next() {
    uint64_t result = rotate(state_[1] * 5, 7) * 9;
    uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = rotate(state_[3], 45);
    return result;
  }
  // In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  // True with probability `p`; draws nothing when p is 0.
  bool chance(double p) { return p > 0 && uniform() < p; }
  // In [0, bound), every number equally likely. `bound` is not 0.
  uint64_t below(uint64_t bound) {
    uint64_t unfair = (0 - bound) % bound;
    for (;;) {
      uint64_t draw = next();
      if (draw >= unfair) return draw % bound;
    }
  }

 private:
  static uint64_t rotate(uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }
  std::array<uint64_t, 4> state_;
};

}  // namespace rocefs
