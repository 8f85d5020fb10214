// Rates by link width and speed (drivers/infiniband/core/sysfs.c).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rocefs {

struct PortSpeed {
  uint64_t mbps;
  std::string_view name;
  uint8_t width;   // as ibv_port_attr.active_width: 1 is 1X, 2 is 4X
  uint16_t speed;  // as active_speed: 1 SDR, 2 DDR, 4 QDR, 16 FDR, 32 EDR, 64 HDR, 128 NDR, 256 XDR
};
inline constexpr std::array<PortSpeed, 13> kPortSpeeds{{{2'500, "1X SDR", 1, 1},
                                                        {5'000, "1X DDR", 1, 2},
                                                        {10'000, "4X SDR", 2, 1},
                                                        {14'000, "1X FDR", 1, 16},
                                                        {20'000, "4X DDR", 2, 2},
                                                        {25'000, "1X EDR", 1, 32},
                                                        {40'000, "4X QDR", 2, 4},
                                                        {50'000, "1X HDR", 1, 64},
                                                        {56'000, "4X FDR", 2, 16},
                                                        {100'000, "4X EDR", 2, 32},
                                                        {200'000, "4X HDR", 2, 64},
                                                        {400'000, "4X NDR", 2, 128},
                                                        {800'000, "4X XDR", 2, 256}}};

// The slowest entry that carries this rate; the fastest if none does.
inline const PortSpeed& port_speed(uint64_t bps) {
  for (const PortSpeed& speed : kPortSpeeds) {
    if (bps <= speed.mbps * 1'000'000) return speed;
  }
  return kPortSpeeds.back();
}

}  // namespace rocefs
