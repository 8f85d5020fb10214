// Messages between the two mounts of a flow, over a rendezvous line: one line of words each, at
// most kMaxRendezvousLine octets with the line feed. The near end begins:
//
//   near                     far
//   flow 1 name=… …       ->
//                         <- ready mtu=… …      or  fail REASON
//   done                  ->                    or  fail REASON
//                         <- arrived received=… …  or  fail REASON
//
// Keys have a fixed order, each occurs once; numbers are decimal. The addresses of the queue pairs
// are those of the connection.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include "core/base/result.h"
#include "rdma/traffic/endpoint_info.h"
#include "rdma/traffic/flow_spec.h"

namespace rocefs {

inline constexpr size_t kMaxRendezvousLine =
    96 * 1024;  // octets: as many queue pairs as a flow may have

struct FlowOffer {
  // Name, op and numbers; no port, no path, no address.
  FlowSpec spec;
  bool file = false;  // a real one; the far end says how long a file is that is READ
  uint64_t seed = 0;
  EndpointInfo end;
};

struct FlowDone {};

struct FlowFailure {
  std::string reason;
};

// Without their line feed.
std::string text_of(const FlowOffer& offer);
std::string text_of(const EndpointInfo& ready);
std::string text_of(FlowDone);
std::string text_of(const FlowReport& report);
std::string text_of(const FlowFailure& failure);

// EINVAL or EPROTO, with the reason, for a line that is no message. All numbers are within a flow's
// limits; a failure's reason is one line that may be shown.
using FlowMessage = std::variant<FlowOffer, EndpointInfo, FlowDone, FlowReport, FlowFailure>;
Result<FlowMessage> parse_message(std::string_view line);

}  // namespace rocefs
