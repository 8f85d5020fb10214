#include "rdma/host/interface_line.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <sstream>

namespace rocefs {
namespace {

template <class T>
bool read_number(std::string_view text, T& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_mac(const std::string& text, std::array<uint8_t, 6>& mac) {
  unsigned m[6];
  char more;
  if (std::sscanf(text.c_str(), "%2x:%2x:%2x:%2x:%2x:%2x%c", &m[0], &m[1], &m[2], &m[3], &m[4],
                  &m[5], &more) != 6) {
    return false;
  }
  std::copy_n(m, 6, mac.begin());
  return true;
}

bool read_address(std::string_view text, InterfaceAddress& out) {
  size_t slash = text.find('/');
  if (slash == text.npos || !read_number(text.substr(slash + 1), out.prefix)) return false;
  out.text = text.substr(0, slash);
  return out.prefix <= 8 * out.size() &&
         ::inet_pton(out.ipv6 ? AF_INET6 : AF_INET, out.text.c_str(), out.bytes.data()) == 1;
}

bool read_key(InterfaceLine& line, std::string_view key, std::string_view value) {
  if (key == "mac") return read_mac(std::string(value), line.mac);
  if (key == "mtu") return read_number(value, line.mtu);
  if (key == "speed") return read_number(value, line.speed);
  if (key != "ip" && key != "ip6") return true;  // of a later version
  InterfaceAddress& address = line.addresses.emplace_back();
  address.ipv6 = key == "ip6";
  return read_address(value, address);
}

}  // namespace

bool InterfaceAddress::covers(const InterfaceAddress& other) const {
  if (ipv6 != other.ipv6) return false;
  for (unsigned bit = 0; bit < prefix; ++bit) {
    if ((bytes[bit / 8] ^ other.bytes[bit / 8]) & 0x80 >> bit % 8) return false;
  }
  return true;
}

InterfaceAddress InterfaceAddress::network() const {
  InterfaceAddress network = *this;
  for (unsigned bit = prefix; bit < 8 * bytes.size(); ++bit) {
    network.bytes[bit / 8] &= static_cast<uint8_t>(~(0x80 >> bit % 8));
  }
  return network;
}

std::vector<InterfaceAddress> networks_beyond(const std::vector<InterfaceLine>& own,
                                              const std::vector<InterfaceLine>& others) {
  std::vector<InterfaceAddress> beyond;
  for (const InterfaceLine& far : others) {
    for (const InterfaceAddress& to : far.addresses) {
      auto covers = [&](const InterfaceAddress& address) { return address.covers(to); };
      auto any_covers = [&](const InterfaceLine& line) {
        return std::any_of(line.addresses.begin(), line.addresses.end(), covers);
      };
      auto same_kind = [&](const InterfaceAddress& address) { return address.ipv6 == to.ipv6; };
      const std::vector<InterfaceAddress>& first = own.front().addresses;
      if (std::any_of(own.begin(), own.end(), any_covers)) continue;
      if (std::any_of(beyond.begin(), beyond.end(), covers)) continue;
      if (std::any_of(first.begin(), first.end(), same_kind)) beyond.push_back(to.network());
    }
  }
  return beyond;
}

Result<InterfaceLine> parse_interface(std::string_view text) {
  std::istringstream words{std::string(text)};
  InterfaceLine line;
  words >> line.name;
  for (std::string word; words >> word;) {
    size_t equals = word.find('=');
    std::string_view all = word;
    bool good =
        equals != word.npos && read_key(line, all.substr(0, equals), all.substr(equals + 1));
    if (!good) return errorf(EINVAL, "{}: not understood", word);
  }
  if (line.name.empty() || line.mtu == 0) return errorf(EINVAL, "'{}' is no interface", text);
  return line;
}

}  // namespace rocefs
