// ResponderState: how the responder of a reliable connection takes the next packet.
//
//               a packet ahead of the expected PSN
//               / sequence NAK
//            +------------------------------------> GAP ----+  packets ahead / dropped
//            |   <--------------------------------   |  <---+
//            |     the expected PSN / executed       |
//        IN_ORDER                                    | the expected PSN, refused
//            |   <--------------------------------   |
//            |     the expected PSN / executed       v
//            +------------------------------------> REFUSED -+  packets ahead / dropped
//              the expected PSN, refused                 <--+
//              / RNR NAK or fatal NAK
//
// With selective retransmission there is no GAP unless a missing packet is given up: packets ahead
// are kept, and each missing one gets a NAK of its own (out_of_order.cc). A fatal NAK also ends the
// connection (ERR). Duplicates are answered in each state and change none
// (IBTA 9.7.5.1.4, 9.7.4.1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rocefs {

enum class ResponderState : uint8_t { kInOrder, kGap, kRefused };

inline constexpr std::string_view kResponderStates[] = {"IN_ORDER", "GAP", "REFUSED"};

constexpr std::string_view name(ResponderState state) {
  return kResponderStates[static_cast<size_t>(state)];
}

}  // namespace rocefs
