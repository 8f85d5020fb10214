#include "core/config/topology.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "core/base/kstrto.h"
#include "core/base/units.h"

namespace rocefs {

std::optional<PortName> parse_port_name(std::string_view text) {
  size_t slash = text.find('/');
  PortName name{std::string(text.substr(0, slash)), 1};
  if (slash == text.npos) return name;
  std::string_view number = text.substr(slash + 1);
  if (number != "1" && number != "2") return std::nullopt;
  name.number = number == "1" ? 1 : 2;
  return name;
}

std::string link_name(const std::string& from, const std::string& to, unsigned parallel) {
  std::string name = from + "-" + to;
  std::replace(name.begin(), name.end(), '/', '.');
  if (parallel > 1) name += "." + std::to_string(parallel);
  return name;
}

namespace {

// Place of the n-th device in the plan of addresses (kDeviceBlock).
struct Place {
  unsigned block;
  uint8_t in_block;  // from 1
};
Place place_of(size_t n) {
  return {static_cast<unsigned>((n - 1) / kDeviceBlock),
          static_cast<uint8_t>((n - 1) % kDeviceBlock + 1)};
}

// PCI bus number of a device in its block, which is a PCI domain.
unsigned bus_of(uint8_t in_block) {
  if (in_block <= 2) return in_block == 1 ? 0x2b : 0xac;
  if (in_block == 0x2b) return 0xf0;  // in place of the numbers of the first two
  if (in_block == 0xac) return 0xf1;
  return in_block;
}

bool take_hex(std::string_view& text, size_t digits, unsigned& value) {
  std::string_view number = text.substr(0, digits);
  const char* last = number.data() + number.size();
  auto [end, code] = std::from_chars(number.data(), last, value, 16);
  if (number.size() != digits || code != std::errc() || end != last) return false;
  text.remove_prefix(digits);
  return true;
}

bool take_char(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

// Names follow systemd's: without the domain where it is 0.
std::string netdev_of(Place place) {
  if (place.block == 0) return fmt::format("enp{}s0", bus_of(place.in_block));
  return fmt::format("enP{}p{}s0", place.block, bus_of(place.in_block));
}

// The `port`-th port, from 0, of a device.
PortSpec nth_port(Place place, unsigned port) {
  unsigned row = 2 * place.block + port;
  return {.netdev = netdev_of(place) + (port == 0 ? "" : fmt::format("d{}", port)),
          .mac = {0x02, 0, 0x4c, 0x6d, static_cast<uint8_t>(0x62 + row), place.in_block},
          .ipv4 = {10, 77, static_cast<uint8_t>(row), place.in_block},
          .ipv6 = {}};
}

}  // namespace

DeviceSpec nth_device(std::string name, size_t n) {
  Place place = place_of(n);
  std::string pci = fmt::format("{:04x}:{:02x}:00.0", place.block, bus_of(place.in_block));
  return {std::move(name), std::move(pci), {nth_port(place, 0)}};
}

PortSpec second_port(size_t n) {
  return nth_port(place_of(n), 1);
}

Result<void> set_mtu(std::string_view text, uint32_t& mtu) {
  for (uint32_t allowed : {256u, 512u, 1024u, 2048u, 4096u}) {
    if (text != std::to_string(allowed)) continue;
    mtu = allowed;
    return {};
  }
  return errorf(EINVAL, "mtu={}: 256, 512, 1024, 2048 or 4096 is wanted", text);
}

Result<void> set_mac(std::string_view text, std::array<uint8_t, 6>& mac) {
  std::string_view rest = text;
  bool good = true;
  for (size_t i = 0; i < mac.size(); ++i) {
    unsigned octet = 0;
    good = good && (i == 0 || take_char(rest, ':')) && take_hex(rest, 2, octet);
    mac[i] = static_cast<uint8_t>(octet);
  }
  if (!good || !rest.empty()) return errorf(EINVAL, "mac={}: six octets are wanted", text);
  if (mac[0] & 1) return errorf(EINVAL, "mac={}: a multicast address", text);
  if (mac == std::array<uint8_t, 6>{})
    return errorf(EINVAL, "mac={}: not a station's address", text);
  return {};
}

Result<void> set_pci(std::string_view text, std::string& pci) {
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  std::string_view rest = text;
  bool good = take_hex(rest, 4, domain) && take_char(rest, ':') && take_hex(rest, 2, bus) &&
              take_char(rest, ':') && take_hex(rest, 2, slot) && take_char(rest, '.') &&
              take_hex(rest, 1, function) && rest.empty();
  if (!good || slot > 31 || function > 7) {
    return errorf(EINVAL, "pci={}: an address such as 0000:2b:00.0 is wanted", text);
  }
  pci = fmt::format("{:04x}:{:02x}:{:02x}.{}", domain, bus, slot, function);
  return {};
}

Result<void> set_ipv4(const std::string& text, std::array<uint8_t, 4>& ip) {
  if (::inet_pton(AF_INET, text.c_str(), ip.data()) != 1) {
    return errorf(EINVAL, "ip={}: an IPv4 address is wanted", text);
  }
  if (ip[0] == 0 || ip[0] >= 224) return errorf(EINVAL, "ip={}: not a unicast address", text);
  return {};
}

// GID 0 is the link-local address and GID 1 the mapped IPv4 one: this is GID 2.
Result<void> set_ipv6(const std::string& text, std::optional<std::array<uint8_t, 16>>& ip) {
  in6_addr address;
  if (::inet_pton(AF_INET6, text.c_str(), &address) != 1) {
    return errorf(EINVAL, "ip6={}: an IPv6 address is wanted", text);
  }
  if (IN6_IS_ADDR_UNSPECIFIED(&address) || IN6_IS_ADDR_LOOPBACK(&address) ||
      IN6_IS_ADDR_MULTICAST(&address) || IN6_IS_ADDR_LINKLOCAL(&address) ||
      IN6_IS_ADDR_V4MAPPED(&address)) {
    return errorf(EINVAL, "ip6={}: not a global unicast address", text);
  }
  std::memcpy(ip.emplace().data(), &address, sizeof address);
  return {};
}

namespace {

Result<void> set_buffer(std::string_view key, std::string_view value, uint64_t& octets) {
  Result<void> kept = keep(key, parse_size(value), octets);
  if (kept && octets > kMaxBuffer) return errorf(EINVAL, "{}={} is larger than 1T", key, value);
  return kept;
}

}  // namespace

Result<void> set_switch_key(SwitchSpec& one, std::string_view key, std::string_view value) {
  if (key == "buffer") return set_buffer(key, value, one.buffer_bytes);
  return errorf(EINVAL, "unknown key {} in [switch]: buffer is wanted", key);
}

Result<void> set_link_key(LinkSpec& link, std::string_view key, std::string_view value) {
  if (key == "rate") {
    Result<void> kept = keep(key, parse_rate(value), link.rate_bps);
    if (kept && (link.rate_bps < 1'000'000 || link.rate_bps > 10'000'000'000'000)) {
      return errorf(EINVAL, "rate={} is outside 1M to 10T", value);
    }
    return kept;
  }
  if (key == "delay") {
    Result<void> kept = keep(key, parse_duration(value), link.delay_ns);
    if (kept && link.delay_ns > 10 * kSecond) {
      return errorf(EINVAL, "delay={} is longer than 10s", value);
    }
    return kept;
  }
  if (key == "loss") return keep(key, parse_probability(value), link.loss);
  if (key == "buffer") return set_buffer(key, value, link.buffer_bytes);
  if (key == "ingress_buffer") return set_buffer(key, value, link.ingress_buffer_bytes);
  if (key == "state") {
    if (value != "up" && value != "down") {
      return errorf(EINVAL, "state={}: up or down is wanted", value);
    }
    link.up = value == "up";
    return {};
  }
  return errorf(EINVAL,
                "unknown key {} in [link]: rate, delay, loss, buffer, ingress_buffer or state is "
                "wanted",
                key);
}

Result<void> set_uplink_key(UplinkSpec& uplink, std::string_view key, std::string_view value) {
  if (key != "gso") return errorf(EINVAL, "unknown key {} in [uplink]: gso is wanted", key);
  Result<bool> wanted = kstrtobool(value);
  if (!wanted) return errorf(EINVAL, "gso={}: on or off is wanted", value);
  uplink.gso = *wanted;
  return {};
}

Topology default_topology() {
  Topology topology;
  topology.devices = {
      {"mb_0", "0000:2b:00.0", {{"enp43s0", {0x02, 0, 0x4c, 0x6d, 0x62, 1}, {10, 77, 0, 1}, {}}}},
      {"mb_1", "0000:ac:00.0", {{"enp172s0", {0x02, 0, 0x4c, 0x6d, 0x62, 2}, {10, 77, 0, 2}, {}}}}};
  topology.switches = {{"sw_0"}};
  topology.links = {{"mb_0", "sw_0"}, {"mb_1", "sw_0"}};
  return topology;
}

Result<Topology> uplink_topology(const std::string& address) {
  Topology topology = default_topology();
  PortSpec& port = topology.devices[0].ports[0];
  bool ipv6 = address.find(':') != address.npos;
  Result<void> taken = ipv6 ? set_ipv6(address, port.ipv6) : set_ipv4(address, port.ipv4);
  if (!taken) return taken.error();
  topology.uplinks = {{"uplink"}};
  topology.links.push_back({"sw_0", "uplink"});
  return topology;
}

}  // namespace rocefs
