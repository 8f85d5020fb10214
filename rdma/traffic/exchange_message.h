// What the two mounts of a flow tell each other over their exchange: lines of words, one message
// each, at most kMaxExchangeLine octets with the line feed. The near end begins:
//
//   near                     far
//   flow 1 name=… …       ->
//                         <- ready mtu=… …      or  fail REASON
//   done                  ->                    or  fail REASON
//                         <- arrived received=… …  or  fail REASON
//
// Keys come in one order and each of them once; numbers are decimal. Whose addresses the queue
// pairs have the connection says, not a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include "rdma/traffic/half_flow.h"

namespace rocefs {

inline constexpr size_t kMaxExchangeLine =
    96 * 1024;  // octets: as many queue pairs as a flow may have

struct FlowOffer {
  // name, op and numbers; no port, no path, no address.
  FlowSpec spec;
  bool file = false;  // a real one; of a READ the far end says how long it is
  uint64_t seed = 0;
  FlowEnd end;
};

struct FlowDone {};

struct FlowFailure {
  std::string reason;
};

// Without their line feed.
std::string text_of(const FlowOffer& offer);
std::string text_of(const FlowEnd& ready);
std::string text_of(FlowDone);
std::string text_of(const FlowReport& report);
std::string text_of(const FlowFailure& failure);

// EINVAL with the reason for all that is no message. Every number is within what a flow may have;
// a failure's reason is one line that may be shown.
using FlowMessage = std::variant<FlowOffer, FlowEnd, FlowDone, FlowReport, FlowFailure>;
Result<FlowMessage> parse_message(std::string_view line);

}  // namespace rocefs
