// The packets captured between two kernels' Soft-RoCE drivers, from the IP header on.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace rocefs::test {

using Bytes = std::vector<uint8_t>;

inline std::string shared_folder() {
  const char* folder = std::getenv("ROCEFS_SHARED");
  return folder ? folder : "../shared";
}

// Nothing where the shared folder is absent.
inline std::optional<std::vector<Bytes>> golden_packets() {
  std::ifstream file(shared_folder() + "/data/rxe-golden.pcap", std::ios::binary);
  if (!file) return std::nullopt;
  constexpr size_t kFileHeader = 24, kRecordHeader = 16, kEthernet = 14;
  Bytes all((std::istreambuf_iterator<char>(file)), {});
  auto length_at = [&](size_t at) {
    return all[at] | uint32_t{all[at + 1]} << 8 | uint32_t{all[at + 2]} << 16 |
           uint32_t{all[at + 3]} << 24;
  };
  std::vector<Bytes> packets;
  for (size_t at = kFileHeader; at + kRecordHeader <= all.size();) {
    size_t length = length_at(at + 8);
    at += kRecordHeader;
    packets.emplace_back(all.begin() + static_cast<long>(at + kEthernet),
                         all.begin() + static_cast<long>(at + length));
    at += length;
  }
  return packets;
}

}  // namespace rocefs::test
