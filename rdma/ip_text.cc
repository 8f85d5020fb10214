#include "rdma/ip_text.h"

#include <arpa/inet.h>

namespace rocefs {

std::string ip_text(const Ip& ip) {
  char text[INET6_ADDRSTRLEN] = {};
  bool v4 = is_mapped_ipv4(ip);
  ::inet_ntop(v4 ? AF_INET : AF_INET6, ip.data() + (v4 ? 12 : 0), text, sizeof text);
  return text;
}

}  // namespace rocefs
