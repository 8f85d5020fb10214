// Guard: who may ask the page's server for what. Anybody who reaches the port may look; only who
// has the token may store. Pages of other origins may do neither, also where a name of theirs leads
// to this machine (DNS rebinding).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rocefs {

// 128 random bits in hexadecimal digits; empty if the kernel has none to give.
std::string new_token();

// Any thread.
class Guard {
 public:
  // `token`: empty where nobody may store.
  Guard(uint16_t port, std::string token) : port_(port), token_(std::move(token)) {}

  // Whether the request's header Host names this server by an address or as localhost. A page of
  // another site whose name was made to lead here sends that name.
  bool own_host(std::string_view host) const;
  // Whether a store may come from this Origin (empty: no browser) to this Host, with this token.
  bool may_store(std::string_view host, std::string_view origin, std::string_view token) const;
  bool stores() const { return !token_.empty(); }

 private:
  const uint16_t port_;
  const std::string token_;
};

}  // namespace rocefs
