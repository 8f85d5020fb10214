// FloodedPackets: packets of which a switch has a copy in several egress queues. A shared-memory
// switch stores such a packet once, until the last copy has left: so it is counted. Core thread.
#pragma once

#include <cstdint>
#include <vector>

namespace rocefs {

class FloodedPackets {
 public:
  // Adds a packet without copies; returns its number, free again when the packet is removed.
  uint32_t add(uint16_t ingress) {
    if (free_.empty()) {
      packets_.push_back({});
      free_.push_back(static_cast<uint32_t>(packets_.size() - 1));
    }
    const uint32_t number = free_.back();
    free_.pop_back();
    packets_[number] = {0, ingress};
    return number;
  }
  void remove(uint32_t number) { free_.push_back(number); }
  void clear() {
    packets_.clear();
    free_.clear();
  }

  uint16_t ingress(uint32_t number) const { return packets_[number].ingress; }
  // Copies in the switch.
  uint32_t& copies(uint32_t number) { return packets_[number].copies; }

 private:
  struct Flooded {
    uint32_t copies = 0;
    uint16_t ingress = 0;  // port
  };
  std::vector<Flooded> packets_;
  std::vector<uint32_t> free_;
};

}  // namespace rocefs
