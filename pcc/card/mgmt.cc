#include "pcc/card/mgmt.h"
#include "core/tree/knob_file.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "core/base/kstrto.h"

namespace rocefs {
namespace {

constexpr size_t kHost = knob_index(kMgmtKnobs, "host_ip");
constexpr size_t kSoc = knob_index(kMgmtKnobs, "soc_ip");
constexpr size_t kSubnet = knob_index(kMgmtKnobs, "subnet");

const std::string& text_of(std::span<const KnobValue> values, size_t index) {
  return std::get<std::string>(values[index]);
}

// Address in host byte order.
std::optional<uint32_t> parse_ipv4(const std::string& text) {
  in_addr address{};
  if (::inet_pton(AF_INET, text.c_str(), &address) != 1) return std::nullopt;
  return ntohl(address.s_addr);
}

// Kind of an address that no host has, whatever its network; empty for others.
std::string_view unusable(uint32_t address) {
  if (address == INADDR_ANY) return "the unspecified address";
  if (address == INADDR_BROADCAST) return "the broadcast address";
  if (address >> 24 == IN_LOOPBACKNET) return "a loopback address";
  if (IN_MULTICAST(address)) return "a multicast address";
  return {};
}

// Kind of an address that no host of a network has; empty for others.
std::string_view unusable_in_network(uint32_t address, uint64_t bits) {
  const uint32_t host_bits = ~uint32_t{0} >> bits;
  if ((address & host_bits) == 0) return "the address of the network itself";
  if ((address & host_bits) == host_bits) return "the broadcast address of its network";
  return {};
}

// Subnet by index, in the private networks of RFC 1918; an octet ends at 255.
std::string network_of(size_t index) {
  constexpr size_t kTens = 25, kOctet = 256;
  if (index < kTens) return fmt::format("192.168.{}", 10 * (index + 1));
  if (index < kOctet) return fmt::format("172.16.{}", index);
  return fmt::format("10.{}.{}", 128 + index / kOctet, index % kOctet);
}

std::vector<KnobValue> start_of(size_t index, bool configured) {
  if (!configured) return initial_values(kMgmtKnobs);
  std::string network = network_of(index);
  return {network + ".1", network + ".2", std::string("24")};
}

}  // namespace

Mgmt::Mgmt(Tree& tree, size_t index, Engine& engine, bool configured)
    : name_(fmt::format("mango_mgmt{}", index)),
      set_(std::make_shared<KnobSet>(kMgmtKnobs, engine, this, start_of(index, configured))) {
  tree.add_later("class/net", [this, &tree] { add_knob_files(tree, "class/net/" + name_, set_); });
}

Result<void> Mgmt::reachable() const {
  if (!text_of(set_->values(), kHost).empty()) return {};
  return errorf(EHOSTUNREACH, "the card's processor cannot be reached: {} has no addresses", name_);
}

Result<void> Mgmt::check(std::span<const KnobValue> proposed) const {
  auto is_empty = [](const KnobValue& value) { return std::get<std::string>(value).empty(); };
  if (std::all_of(proposed.begin(), proposed.end(), is_empty)) return {};
  for (size_t index : {kHost, kSoc}) {
    const std::string& text = text_of(proposed, index);
    std::optional<uint32_t> address = parse_ipv4(text);
    if (!address) {
      return errorf(EINVAL, "{} '{}' is no IPv4 address", kMgmtKnobs[index].path, text);
    }
    if (std::string_view kind = unusable(*address); !kind.empty()) {
      return errorf(EINVAL, "{} {} is {}", kMgmtKnobs[index].path, text, kind);
    }
  }
  uint32_t host = *parse_ipv4(text_of(proposed, kHost));
  uint32_t soc = *parse_ipv4(text_of(proposed, kSoc));
  Result<uint64_t> bits = kstrtou64(text_of(proposed, kSubnet), 10);
  if (!bits || *bits < 1 || *bits > 30 || text_of(proposed, kSubnet)[0] == '0') {
    return errorf(EINVAL, "subnet '{}' is outside 1 to 30", text_of(proposed, kSubnet));
  }
  if (host == soc) return Error{EINVAL, "host_ip and soc_ip are the same"};
  if ((host ^ soc) >> (32 - *bits) != 0) {
    return errorf(EINVAL, "host_ip {} and soc_ip {} are not in one subnet of {} bits",
                  text_of(proposed, kHost), text_of(proposed, kSoc), *bits);
  }
  for (auto [index, address] : {std::pair{kHost, host}, {kSoc, soc}}) {
    std::string_view kind = unusable_in_network(address, *bits);
    if (kind.empty()) continue;
    return errorf(EINVAL, "{} {} is {}", kMgmtKnobs[index].path, text_of(proposed, index), kind);
  }
  return {};
}

}  // namespace rocefs
