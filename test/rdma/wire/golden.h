// The packets captured between two kernels' Soft-RoCE drivers, from the IP header on.
#pragma once

#include <cstdint>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace rocefs::test {

using Bytes = std::vector<uint8_t>;

// Throws where the capture is absent: it is part of the checkout. A file that is no little-endian
// pcap of Ethernet frames gives no packets, a damaged one those before the damage: tests count
// them.
inline std::vector<Bytes> golden_packets() {
  const std::string path = "test/golden/rxe-golden.pcap";
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("no " + path + " below the working directory");
  constexpr size_t kFileHeader = 24, kRecordHeader = 16, kEthernet = 14;
  constexpr uint32_t kMicroseconds = 0xa1b2c3d4, kNanoseconds = 0xa1b23c4d, kEthernetLink = 1;
  Bytes all((std::istreambuf_iterator<char>(file)), {});
  auto number_at = [&](size_t at) {
    return all[at] | uint32_t{all[at + 1]} << 8 | uint32_t{all[at + 2]} << 16 |
           uint32_t{all[at + 3]} << 24;
  };
  std::vector<Bytes> packets;
  if (all.size() < kFileHeader || number_at(20) != kEthernetLink) return packets;
  if (number_at(0) != kMicroseconds && number_at(0) != kNanoseconds) return packets;
  for (size_t at = kFileHeader; at + kRecordHeader <= all.size();) {
    size_t length = number_at(at + 8);
    at += kRecordHeader;
    if (length < kEthernet || length > all.size() - at) break;
    auto frame = all.begin() + static_cast<long>(at);
    packets.emplace_back(frame + kEthernet, frame + static_cast<long>(length));
    at += length;
  }
  return packets;
}

}  // namespace rocefs::test
