#include "rdma/traffic/remote_join.h"

#include <algorithm>
#include <cerrno>

#include "core/base/hash.h"
#include "rdma/network/fabric.h"

namespace rocefs {

PsnDraw::PsnDraw(const FlowParts& parts) {
  auto life = static_cast<uint64_t>(parts.fabric.scheduler().now());
  draw_ = mix64(parts.fabric.seed() ^ fnv1a64(parts.spec.name) ^ mix64(life));
}

AddressVector path_between(const Ip& local, const Ip& remote) {
  AddressVector path;
  path.local = local;
  path.remote = remote;
  return path;
}

EndpointInfo info_of(const FlowEndpoint& end, const FlowSpec& spec, uint64_t file) {
  EndpointInfo info{end.port().mtu(), end.address(), end.key(), file, {}};
  if (spec.mtu) info.mtu = std::min(info.mtu, spec.mtu);
  for (uint32_t i = 0; i < end.qp_count(); ++i) info.qps.push_back(end.qp(i));
  return info;
}

Result<void> join(FlowEndpoint& end, const FlowSpec& spec, const AddressVector& path,
                  const EndpointInfo& other) {
  uint32_t mtu = std::min(other.mtu, end.port().mtu());
  if (spec.mtu) mtu = std::min(mtu, spec.mtu);
  if (spec.op == FlowOp::kUd && spec.size > mtu) {
    return errorf(EINVAL, "size={}: a datagram holds at most the MTU, {} bytes", spec.size, mtu);
  }
  end.set_peer({other.address, other.key, path, mtu});
  return {};
}

void discard(const FlowParts& parts, FlowEndpoint& end) {
  if (parts.discard && end.memory()) parts.discard(end.take_memory());
}

}  // namespace rocefs
