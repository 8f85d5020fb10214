// IP addresses for people.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rdma/wire/ip.h"

namespace rocefs {

// As inet_ntop() writes it: 10.77.0.1, 2001:db8::1.
std::string ip_text(const Ip& ip);
// As inet_pton() reads it; nothing for what is no address.
std::optional<Ip> parse_ip(std::string_view text);

}  // namespace rocefs
