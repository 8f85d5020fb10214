#include "tools/rocefs-view/guard.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/random.h>

#include <cstddef>

namespace rocefs {

std::string new_token() {
  uint8_t bytes[16];
  if (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) return {};
  std::string token;
  for (uint8_t byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

bool Guard::own_host(std::string_view host) const {
  std::string port = fmt::format(":{}", port_);
  if (!host.ends_with(port)) return port_ == 80 && own_host(std::string(host) + port);
  std::string name(host.substr(0, host.size() - port.size()));
  if (name == "localhost") return true;
  in6_addr address;
  if (name.starts_with('[') && name.ends_with(']')) {
    return ::inet_pton(AF_INET6, name.substr(1, name.size() - 2).c_str(), &address) == 1;
  }
  return ::inet_pton(AF_INET, name.c_str(), &address) == 1;
}

// The comparison takes the same time whatever differs.
bool Guard::may_store(std::string_view host, std::string_view origin,
                      std::string_view token) const {
  if (!stores() || !own_host(host)) return false;
  if (!origin.empty() && origin != fmt::format("http://{}", host)) return false;
  if (token.size() != token_.size()) return false;
  unsigned differs = 0;
  for (size_t i = 0; i < token.size(); ++i) {
    differs |= static_cast<unsigned char>(token[i]) ^ static_cast<unsigned char>(token_[i]);
  }
  return differs == 0;
}

}  // namespace rocefs
