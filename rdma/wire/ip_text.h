// Text form of IP addresses.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rdma/wire/ip.h"

namespace rocefs {

// Format of inet_ntop(): 10.77.0.1, 2001:db8::1.
std::string ip_text(const Ip& ip);
// Format of inet_pton(); empty for an invalid address.
std::optional<Ip> parse_ip(std::string_view text);

}  // namespace rocefs
