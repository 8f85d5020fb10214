// Text of a host's interface in its file `interfaces`.
#pragma once

#include <fmt/format.h>

#include <string>

#include "rdma/nic/port.h"
#include "rdma/wire/ip_text.h"

namespace rocefs {

// NAME mac=MAC mtu=MTU speed=MB/S ip=ADDRESS/PREFIX [ip6=ADDRESS/PREFIX]
inline std::string interface_text(const Port& port) {
  const PortSpec& spec = port.spec();
  std::string text = fmt::format("{} mac={:02x} mtu={} speed={} ip={}/24", spec.netdev,
                                 fmt::join(spec.mac, ":"), spec.mtu + kRoceHeaders,
                                 port.line_bps() / 1'000'000, ip_text(mapped_ipv4(spec.ipv4)));
  if (spec.ipv6) text += fmt::format(" ip6={}/64", ip_text(*spec.ipv6));
  return text;
}

}  // namespace rocefs
