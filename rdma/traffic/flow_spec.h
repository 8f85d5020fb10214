// FlowSpec: the parameters of a flow, as they are written to traffic/start.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "rdma/traffic/flow_ops.h"
#include "rdma/wire/ip.h"

namespace rocefs {

// Queue pairs of a flow between two mounts: all of them are in one message of the rendezvous.
inline constexpr uint32_t kMaxRemoteQps = 4096;

// The line that `echo NAME OP FROM TO KEY=VALUE… > traffic/start` says.
struct FlowSpec {
  std::string name;
  FlowOp op = FlowOp::kWrite;
  bool accepts = false;      // NAME accept PORT: the far end of a flow that another mount starts
  std::string from, to;      // ports: DEVICE or DEVICE/N
  std::optional<Ip> remote;  // TO as an address, behind an uplink; with accepts: the only peer
  uint32_t qps = 1;
  uint64_t size = 64 * 1024;  // bytes per message
  uint64_t count = 1;         // messages, over all queue pairs in turn; not with a file
  std::string input, output;  // paths, as the writer named them
  uint32_t mtu = 0;           // 0: the smaller of the two ports'
  uint32_t window = 128;      // packets per queue pair
  uint8_t timeout = 14;
  uint8_t retry = 7;
  uint32_t gid = 1;    // index in the GID table of both ends: 0 is IPv6, 1 IPv4; not with remote
  bool verify = true;  // false: bytes are counted, not made, kept or checked
};

// EINVAL with the reason for a malformed line; device names are not looked up.
Result<FlowSpec> parse_flow(std::string_view line);
// Sets one KEY=VALUE of the line. EINVAL, ERANGE.
Result<void> set_flow_key(FlowSpec& spec, std::string_view key, std::string_view value);
// EINVAL for any other word.
Result<FlowOp> parse_flow_op(std::string_view word);
// EINVAL for a name that a flow cannot have.
Result<void> check_flow_name(std::string_view name);

}  // namespace rocefs
