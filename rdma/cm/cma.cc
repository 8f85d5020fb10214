#include "rdma/cm/cma.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "rdma/nic/device.h"
#include "rdma/wire/ip_text.h"

namespace rocefs {
namespace {

// Default of net.ipv4.ip_local_port_range.
constexpr uint16_t kFirstNumber = 32768, kLastNumber = 60999;

uint32_t key_of(const CmId& id, uint16_t number) {
  return uint32_t{static_cast<uint16_t>(id.space())} << 16 | number;
}

bool is_link_local(const Ip& ip) {
  return ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80;
}

unsigned common_bits(const Ip& a, const Ip& b) {
  unsigned bits = 0;
  for (size_t i = 0; i < a.size(); ++i, bits += 8) {
    auto differ = static_cast<uint8_t>(a[i] ^ b[i]);
    if (differ != 0) return bits + static_cast<unsigned>(std::countl_zero(differ));
  }
  return bits;
}

template <class Visit>
void each_port(Fabric& fabric, const CmScope& scope, Visit visit) {
  for (const auto& device : fabric.devices()) {
    if (!scope.covers(*device)) continue;
    for (size_t i = 1; device->present() && i <= device->port_count(); ++i) visit(device->port(i));
  }
}

CmAddress address_of(const Ip& ip, uint16_t port) {
  using Family = CmAddress::Family;
  return {is_mapped_ipv4(ip) ? Family::kIpv4 : Family::kIpv6, ip, port, 0};
}

std::vector<uint8_t> user_data(std::span<const uint8_t> private_data, size_t header) {
  return {private_data.begin() + static_cast<long>(header), private_data.end()};
}

}  // namespace

Cma::Cma(Fabric& fabric, uint64_t salt) : fabric_(fabric), next_number_(kFirstNumber) {
  for (const auto& device : fabric_.devices()) {
    managers_.push_back(std::make_unique<CmManager>(*device, *this, salt));
    by_device_[device.get()] = managers_.back().get();
    device->on_presence([this, at = device.get()](bool present) {
      present ? manager(*at).reset_counters() : device_left(*at);
    });
  }
}

Cma::~Cma() = default;

CmManager& Cma::manager(const PortHost& device) {
  return *by_device_.at(&device);
}

Port* Cma::port_at(const Ip& address, const CmScope& scope) const {
  Port* found = nullptr;
  each_port(fabric_, scope, [&](Port& port) {
    if (!found && port.gids().has(address)) found = &port;
  });
  return found;
}

namespace {

bool of_one_kind(const Ip& own, const Ip& destination) {
  if (is_mapped_ipv4(own) != is_mapped_ipv4(destination)) return false;
  return is_mapped_ipv4(own) || is_link_local(own) == is_link_local(destination);
}

// Networks have the prefix lengths of interface_text(): 24 bits of IPv4, 64 of IPv6.
bool in_one_network(const Ip& own, const Ip& destination) {
  return of_one_kind(own, destination) &&
         common_bits(own, destination) >= (is_mapped_ipv4(own) ? 96 + 24 : 64);
}

}  // namespace

// Whether an address stands for all devices: none, or as for Linux (cma_any_addr) a loopback
// address, unless a device has it.
bool Cma::is_wildcard(const CmAddress& address, const CmScope& scope) const {
  return address.any() || (address.loopback() && !port_at(address.ip, scope));
}

// Whether a loopback address is somebody else's: an uplink leads to all but the machine's own,
// 127.0.0.1, once it has such an address itself.
bool Cma::is_on_uplink(const CmAddress& address, const CmScope& scope) const {
  if (!is_loopback(address.ip) || address.ip == mapped_ipv4({127, 0, 0, 1})) return false;
  bool leads = false;
  each_port(fabric_, scope, [&](const Port& port) {
    for (const Ip& ip : port.gids().entries()) {
      leads = leads || (is_loopback(ip) && fabric_.reaches_outside(ip));
    }
  });
  return leads;
}

// First address of the port that can talk to `destination`.
std::optional<Ip> Cma::source_at(Port& port, const Ip& destination) const {
  for (const Ip& ip : port.gids().entries()) {
    if (ip != Ip{} && of_one_kind(ip, destination)) return ip;
  }
  return std::nullopt;
}

// A group is reached from any port: from the source's, or the first one.
Port* Cma::resolve_group(CmAddress& source, const CmAddress& group, const CmScope& scope) {
  if (!is_wildcard(source, scope)) return port_at(source.ip, scope);
  Port* first = nullptr;
  each_port(fabric_, scope, [&](Port& port) {
    std::optional<Ip> ip = first ? std::nullopt : source_at(port, group.ip);
    if (!ip) return;
    first = &port;
    source.ip = *ip;
  });
  return first;
}

CmWay Cma::resolve_own(CmAddress& source, CmAddress& destination, const CmScope& scope) {
  Port* own = is_wildcard(source, scope) ? nullptr : port_at(source.ip, scope);
  if (own) destination.ip = source.ip;
  each_port(fabric_, scope, [&](Port& port) {
    std::optional<Ip> ip = own ? std::nullopt : source_at(port, source.ip);
    if (!ip) return;
    own = &port;
    source.ip = destination.ip = *ip;
  });
  return {own, CmWay::Reach::kKnown};
}

// How a destination that no port has is reached. Packets of an uplink's address leave by the
// mount's own network, also those of hosts; the others of a host by its interfaces.
CmWay::Reach Cma::reach_of(const Ip& source, const Ip& destination, const CmScope& scope) const {
  using Reach = CmWay::Reach;
  if (!of_one_kind(source, destination)) return Reach::kNone;
  bool outside = fabric_.reaches_outside(source);
  if (outside && !search_) return Reach::kKnown;
  if (outside || (scope.host() && search_)) return Reach::kOutside;
  return in_one_network(source, destination) ? Reach::kNobody : Reach::kNone;
}

// Choice among several ports: the best way, not the destination's port, and the address with the
// longest prefix in common.
CmWay Cma::resolve(CmAddress& source, CmAddress& destination, const CmScope& scope) {
  if (is_wildcard(destination, {}) && !is_on_uplink(destination, scope)) {
    return resolve_own(source, destination, scope);
  }
  if (is_multicast(destination.ip)) {
    return {resolve_group(source, destination, scope), CmWay::Reach::kKnown};
  }
  Port* far = port_at(destination.ip, {});
  auto reach = [&](const Ip& ip) {
    return far ? CmWay::Reach::kKnown : reach_of(ip, destination.ip, scope);
  };
  if (!is_wildcard(source, scope)) {
    CmWay way{port_at(source.ip, scope), reach(source.ip)};
    return way.reach == CmWay::Reach::kNone ? CmWay{} : way;
  }
  CmWay best;
  unsigned best_bits = 0;
  each_port(fabric_, scope, [&](Port& port) {
    for (const Ip& ip : port.gids().entries()) {
      if (ip == Ip{} || !of_one_kind(ip, destination.ip)) continue;
      CmWay way{&port, reach(ip)};
      unsigned bits = &port == far ? 1 : 2 + common_bits(ip, destination.ip);
      bool better = way.reach > best.reach || (way.reach == best.reach && bits > best_bits);
      if (way.reach == CmWay::Reach::kNone || !better) continue;
      best = way;
      best_bits = bits;
      source.ip = ip;
    }
  });
  return best;
}

void Cma::search(const CmId& id, uint32_t attempt, const Ip& source, const Ip& destination,
                 TimeNs patience) {
  const PortHost* host = fabric_.reaches_outside(source) ? nullptr : id.scope().host();
  search_({id.serial(), attempt, host, source, destination, patience});
}

void Cma::answered(const CmSearch& search, int error) {
  auto id = ids_.find(search.id);
  if (id != ids_.end()) id->second->searched(search.attempt, error);
}

namespace {

std::string_view name(PortSpace space) {
  switch (space) {
    case PortSpace::kIpoib:
      return "IPOIB";
    case PortSpace::kIb:
      return "IB";
    case PortSpace::kTcp:
      return "TCP";
    case PortSpace::kUdp:
      return "UDP";
  }
  return "?";
}

}  // namespace

std::string text_of(const CmAddress& address) {
  if (address.family == CmAddress::Family::kNone) return "-";
  std::string ip =
      address.family == CmAddress::Family::kIpv4 && address.any() ? "0.0.0.0" : ip_text(address.ip);
  if (ip.find(':') != ip.npos) ip = fmt::format("[{}]", ip);
  return fmt::format("{}:{}", ip, address.port);
}

std::string Cma::text() const {
  constexpr std::string_view kStates[] = {
      "idle",    "bound",      "address query", "address resolved", "route resolved",
      "connect", "disconnect", "listen",        "device gone"};
  std::string text;
  for (const auto& [serial, id] : ids_) {
    Port* port = id->port();
    text += fmt::format(
        "{} {} {} local={} remote={} state={}\n", name(id->space()), rocefs::name(id->type()),
        port ? fmt::format("{}/{}", port->host().name(), port->number()) : "-",
        text_of(id->local()), text_of(id->remote()), kStates[static_cast<size_t>(id->state())]);
  }
  return text;
}

namespace {

// Removes one of the few entries under `key`.
template <class Map, class Key>
void erase(Map& map, const Key& key, const CmId& id) {
  auto [first, last] = map.equal_range(key);
  auto found = std::find_if(first, last, [&](const auto& one) { return one.second == &id; });
  if (found != last) map.erase(found);
}

}  // namespace

uint64_t Cma::add(CmId& id) {
  ids_[++last_serial_] = &id;
  return last_serial_;
}

void Cma::remove(CmId& id) {
  ids_.erase(id.serial());
  stop_listening(id);
  erase(numbers_, key_of(id, id.local().port), id);
}

void Cma::stop_listening(CmId& id) {
  erase(listeners_, id.service_id(), id);
}

namespace {

bool takes_one_family(const CmId& id, const CmAddress& address) {
  return address.family == CmAddress::Family::kIpv4 || !id.takes_both_families();
}

}  // namespace

bool Cma::is_free(const CmId& id, const CmAddress& address) const {
  auto [first, last] = numbers_.equal_range(key_of(id, address.port));
  return std::all_of(first, last, [&](const auto& taken) {
    const CmId& other = *taken.second;
    if (!id.scope().overlaps(other.scope())) return true;
    if (id.reuses_address() && other.reuses_address() && other.state() != CmId::State::kListen) {
      return true;
    }
    bool apart = takes_one_family(id, address) && takes_one_family(other, other.local());
    if (apart && address.family != other.local().family) return true;
    return !is_wildcard(address, id.scope()) && !is_wildcard(other.local(), other.scope()) &&
           address.ip != other.local().ip;
  });
}

Result<void> Cma::bind(CmId& id, CmAddress& address) {
  bool any_number = address.port == 0;
  for (uint32_t tried = kFirstNumber; any_number && tried <= kLastNumber; ++tried) {
    address.port = next_number_;
    next_number_ = next_number_ == kLastNumber ? kFirstNumber : next_number_ + 1;
    if (is_free(id, address)) break;
  }
  if (!is_free(id, address)) return errorf(EADDRINUSE, "port {} is in use", address.port);
  if (any_number && address.family == CmAddress::Family::kIb) address.service_id |= address.port;
  numbers_.emplace(key_of(id, address.port), &id);
  return {};
}

Result<void> Cma::listen(CmId& id) {
  auto [first, last] = listeners_.equal_range(id.service_id());
  bool taken = std::any_of(first, last, [&](const auto& other) {
    return other.second->local().ip == id.local().ip && other.second->scope().overlaps(id.scope());
  });
  if (taken) return Error{EADDRINUSE, "somebody listens there"};
  listeners_.emplace(id.service_id(), &id);
  for (const auto& manager : managers_) manager->listener_came();
  return {};
}

// Prefers a listener at this very address to one at any address.
CmId* Cma::listener(uint64_t service_id, const Port& port, const Ip& address, bool datagrams) {
  CmId* any = nullptr;
  auto [first, last] = listeners_.equal_range(service_id);
  for (auto at = first; at != last; ++at) {
    CmId* id = at->second;
    if ((id->type() == QpType::kUd) != datagrams || !id->scope().covers(port.host())) continue;
    if (id->local().ip == address) return id;
    bool of_family = id->local().family != CmAddress::Family::kIpv4 || is_mapped_ipv4(address);
    bool of_other = id->local().family == CmAddress::Family::kIpv6 && is_mapped_ipv4(address);
    bool fits = of_family && (!of_other || id->takes_both_families());
    if (fits && is_wildcard(id->local(), id->scope())) any = id;
  }
  return any;
}

std::optional<Cma::Ends> Cma::ends_of(const CmId& listener, const AddressVector& path,
                                      std::span<const uint8_t> private_data) const {
  if (listener.local().family == CmAddress::Family::kIb) {
    using Family = CmAddress::Family;
    CmAddress local{Family::kIb, path.local, listener.local().port, listener.service_id()};
    return Ends{local, {Family::kIb, path.remote, 0, 0}, 0};
  }
  std::optional<cm::IpHeader> header = cm::parse_ip_header(private_data);
  if (!header || header->source != path.remote || header->destination != path.local) {
    return std::nullopt;
  }
  return Ends{address_of(path.local, listener.local().port),
              address_of(path.remote, header->source_port), cm::IpHeader::kSize};
}

// Refusal of a request by a listener without room comes from ~CmId.
uint16_t Cma::requested(CmConnection& connection) {
  const cm::Req& req = connection.request();
  CmId* listening = listener(req.service_id, connection.port(), connection.path().local, false);
  if (!listening) return cm::kInvalidServiceId;
  std::optional<Ends> ends = ends_of(*listening, connection.path(), req.private_data);
  if (!ends) return cm::kUnsupportedRequest;
  QpType type = req.transport == 1 ? QpType::kUc : QpType::kRc;
  if (type != listening->type()) return cm::kInvalidTransport;
  auto id = std::make_unique<CmId>(*this, listening->space(), type, listening->user(),
                                   listening->scope());
  id->take(connection, ends->local, ends->remote);
  CmEvent event{CmEventType::kConnectRequest, 0, parameters_of(req)};
  event.parameters.retry_count = req.retry_count;
  event.parameters.private_data = user_data(req.private_data, ends->header);
  listening->user().incoming(*listening, std::move(id), event);
  return 0;
}

uint8_t Cma::asked(Sidr& question) {
  const cm::SidrReq& req = question.request();
  CmId* listening = listener(req.service_id, question.port(), question.path().local, true);
  std::optional<Ends> ends;
  if (listening) ends = ends_of(*listening, question.path(), req.private_data);
  if (!ends) return cm::kSidrUnsupported;
  auto id = std::make_unique<CmId>(*this, listening->space(), QpType::kUd, listening->user(),
                                   listening->scope());
  id->take(question, ends->local, ends->remote);
  CmEvent event{CmEventType::kConnectRequest};
  event.parameters.private_data = user_data(req.private_data, ends->header);
  event.path = question.path();
  listening->user().incoming(*listening, std::move(id), event);
  return 0;
}

void Cma::device_left(const Device& device) {
  for (uint64_t serial = 0;;) {
    auto next = ids_.upper_bound(serial);  // destroying one may destroy others
    if (next == ids_.end()) return;
    serial = next->first;
    Port* port = next->second->port();
    if (port && &port->host() == &device) next->second->device_left();
  }
}

}  // namespace rocefs
