#include "rdma/wire/ip_text.h"

#include <arpa/inet.h>

namespace rocefs {

std::string ip_text(const Ip& ip) {
  char text[INET6_ADDRSTRLEN] = {};
  bool v4 = is_mapped_ipv4(ip);
  ::inet_ntop(v4 ? AF_INET : AF_INET6, ip.data() + (v4 ? 12 : 0), text, sizeof text);
  return text;
}

std::optional<Ip> parse_ip(std::string_view text) {
  std::string copy(text);  // with an end
  std::array<uint8_t, 4> v4;
  if (::inet_pton(AF_INET, copy.c_str(), v4.data()) == 1) return mapped_ipv4(v4);
  Ip v6;
  if (::inet_pton(AF_INET6, copy.c_str(), v6.data()) == 1) return v6;
  return std::nullopt;
}

}  // namespace rocefs
