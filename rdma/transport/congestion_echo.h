// CongestionEcho: the options of data packets (rdma/wire/telemetry.h) that a responder takes back
// to their sender in its acknowledgements: those of the newest packet, with the number of marked
// packets since the last answer. Sans-IO.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "rdma/packet/packet.h"
#include "rdma/packet/traffic_class.h"

namespace rocefs {

class CongestionEcho {
 public:
  void note(const Packet& packet) {
    if (packet.option_len == 0 || packet.option_len > wire::kMaxOptionsLen) return;
    if (!state_) state_ = std::make_unique<State>();
    std::ranges::copy(packet.options(), state_->options.begin());
    state_->length = packet.option_len;
    state_->marked += ecn_of(packet) == Ecn::kCongested;
  }
  // Length of the options that the next acknowledgement is to carry; 0: none.
  uint8_t length() const { return state_ ? state_->length : uint8_t{0}; }
  // Adds them to an acknowledgement whose headers count them.
  void answer(Packet& acknowledgement) {
    size_t length = std::exchange(state_->length, uint8_t{0});
    std::span<uint8_t> options = attach_options(acknowledgement, length);
    std::copy_n(state_->options.begin(), length, options.begin());
    wire::Telemetry(options).make_answer(std::exchange(state_->marked, 0u));
  }
  void reset() { state_.reset(); }

 private:
  struct State {
    std::array<uint8_t, wire::kMaxOptionsLen> options;
    uint8_t length = 0;  // 0: all are answered
    uint32_t marked = 0;
  };
  std::unique_ptr<State> state_;  // made for the first packet with options
};

}  // namespace rocefs
