#include "rdma/wire/crc32_copy.h"

#include <isa-l/crc.h>

#include <array>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rocefs::wire {
namespace {

uint32_t copy_then_crc32(uint32_t crc, std::span<const uint8_t> from, uint8_t* to) {
  if (from.empty()) return crc;
  std::memcpy(to, from.data(), from.size());
  return crc32_gzip_refl(crc, to, from.size());
}

#if defined(__x86_64__)
#define WITH_AVX512 __attribute__((target("avx512f,vpclmulqdq")))

// x^n modulo the polynomial of CRC-32, reflected.
constexpr uint64_t power_of_x(unsigned n) {
  constexpr uint32_t kPolynomial = 0xedb88320;
  uint32_t value = 0x80000000;
  while (n-- > 0) value = (value >> 1) ^ (value & 1 ? kPolynomial : 0);
  return value;
}

constexpr size_t kLane = 64;  // octets of a register
constexpr size_t kLanes = 4;  // multiplications that do not wait for each other
constexpr size_t kRound = kLanes * kLane;

// Factors that move 128 bits ahead by so many octets, for each of the four parts of a register
// (Gopal et al., Fast CRC Computation for Generic Polynomials Using PCLMULQDQ, Intel 2009).
template <size_t kOctets>
WITH_AVX512 __m512i factors() {
  constexpr uint64_t kLow = power_of_x(8 * kOctets + 32) << 1;
  constexpr uint64_t kHigh = power_of_x(8 * kOctets - 32) << 1;
  return _mm512_set4_epi64(kHigh, kLow, kHigh, kLow);
}
// The remainder `sum`, moved ahead, and the octets there.
WITH_AVX512 __m512i fold(__m512i sum, __m512i factors, __m512i next) {
  constexpr int kXorOfThree = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(sum, factors, 0x00),
                                   _mm512_clmulepi64_epi128(sum, factors, 0x11), next, kXorOfThree);
}
WITH_AVX512 __m512i copy_lane(const uint8_t* from, uint8_t* to) {
  __m512i lane = _mm512_loadu_si512(from);
  asm("" : "+v"(lane));  // loads it once
  _mm512_storeu_si512(to, lane);
  return lane;
}

// `rounds` of kRound octets, at least one.
WITH_AVX512 uint32_t copy_rounds(uint32_t crc, const uint8_t* from, uint8_t* to, size_t rounds) {
  __m512i sums[kLanes];
  for (size_t i = 0; i < kLanes; ++i) sums[i] = copy_lane(from + i * kLane, to + i * kLane);
  const __m512i begin = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(~crc)));
  sums[0] = _mm512_xor_si512(sums[0], begin);
  const __m512i by_round = factors<kRound>();
  while (--rounds > 0) {
    from += kRound, to += kRound;
    for (size_t i = 0; i < kLanes; ++i) {
      sums[i] = fold(sums[i], by_round, copy_lane(from + i * kLane, to + i * kLane));
    }
  }
  __m512i sum = sums[0];
  for (size_t i = 1; i < kLanes; ++i) sum = fold(sum, factors<kLane>(), sums[i]);
  std::array<uint8_t, kLane> rest;
  _mm512_storeu_si512(rest.data(), sum);
  return crc32_gzip_refl(~uint32_t{0}, rest.data(), rest.size());
}

const bool kHasAvx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
#endif

}  // namespace

uint32_t copy_with_crc32(uint32_t crc, std::span<const uint8_t> from, uint8_t* to) {
#if defined(__x86_64__)
  if (const size_t rounds = from.size() / kRound; rounds > 0 && kHasAvx512) {
    crc = copy_rounds(crc, from.data(), to, rounds);
    from = from.subspan(rounds * kRound);
    to += rounds * kRound;
  }
#endif
  return copy_then_crc32(crc, from, to);
}

}  // namespace rocefs::wire
