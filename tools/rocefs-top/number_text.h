// Numbers as people read them: three digits, and a unit. Any thread.
#pragma once

#include <cstdint>
#include <string>

namespace rocefs::top {

enum class Unit : uint8_t {
  kNone,         // a text
  kCount,        // things: 12.3K is 12,300
  kOctets,       // 1.50 KB is 1,536 octets, as in the files of a mount
  kOctetsPerS,   // octets per second, shown as bits: 1.25e9 is 10.0 Gb/s
  kBitsPerS,     // 10.0 Gb/s
  kPerSecond,    // things per second: 0.25, 12.3K
  kPercent,      // 43.2%
  kNanoseconds,  // 1.50 ms
};

std::string number_text(double value, Unit unit);

}  // namespace rocefs::top
