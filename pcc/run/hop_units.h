// Units of rocefs_qp_hop (rdma/uapi/registers.h), as calls and tests of algorithms convert them.
#pragma once

#include <cstdint>

namespace rocefs {

inline constexpr uint32_t kHopQueueUnit = 16, kHopSentUnit = 64;  // octets
inline constexpr uint64_t kHopRateUnit = 1'000'000;               // bit/s
inline constexpr uint64_t kHopTimeMask = 0xffffff;                // ns

}  // namespace rocefs
