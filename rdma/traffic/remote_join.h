// Joins a flow's end to the other end in another mount.
#pragma once

#include <cstdint>

#include "rdma/traffic/endpoint_info.h"
#include "rdma/traffic/flow_endpoint.h"

namespace rocefs {

// First PSNs of an end's queue pairs. They differ from those of the flow's earlier life, whose late
// packets must not be taken (IBTA 9.7.1).
class PsnDraw {
 public:
  explicit PsnDraw(const FlowParts& parts);
  uint32_t psn(uint32_t pair) const { return mix64(draw_ ^ pair) & 0xffffff; }

 private:
  uint64_t draw_;
};

AddressVector path_between(const Ip& local, const Ip& remote);

// The end as the other one needs it. `file`: bytes of a file that may be read there.
EndpointInfo info_of(const FlowEndpoint& end, const FlowSpec& spec, uint64_t file);

// Sets the end's peer: the other end's memory, and the largest MTU that both ends have. EINVAL for
// datagrams that are longer.
Result<void> join(FlowEndpoint& end, const FlowSpec& spec, const AddressVector& path,
                  const EndpointInfo& other);

// Gives the end's memory to the flow's discard.
void discard(const FlowParts& parts, FlowEndpoint& end);

}  // namespace rocefs
