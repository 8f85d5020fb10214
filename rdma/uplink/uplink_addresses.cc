#include "rdma/uplink/uplink_addresses.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rdma/uplink/udp_sockets.h"
#include "rdma/wire/bytes.h"
#include "rdma/wire/ip_text.h"

namespace rocefs {
namespace {

constexpr TimeNs kBetweenTries = kSecond;
// Interval of checks while an interface has a problem: the kernel reports its carrier up to a
// second late.
constexpr TimeNs kBetweenLooks = 50 * kMillisecond;

Result<Fd> open_receiver(const Ip& ip) {
  return open_udp({ip, wire::kRocePort}, UdpUse::kReceive);
}

// Retries: a worker that has just died may still hold the port until the kernel ends its io_uring.
Result<Fd> open_patiently(const Ip& ip) {
  constexpr int kTries = 20, kBetweenMs = 20;
  Result<Fd> opened = open_receiver(ip);
  for (int i = 1; i < kTries && !opened && opened.error().code == EADDRINUSE; ++i) {
    ::poll(nullptr, 0, kBetweenMs);
    opened = open_receiver(ip);
  }
  return opened;
}

}  // namespace

std::string uplink_said(const std::string& name) {
  return name == "uplink" ? name : "uplink " + name;
}

UplinkAddresses::UplinkAddresses(Parts parts, const std::vector<Served>& served)
    : parts_(std::move(parts)), again_(parts_.loop, [this] { look(); }) {
  for (const Served& one : served) {
    all_.push_back({one.address, one.port, false, false, {}, one.port->largest_mtu()});
  }
  // Watches first, so that no change is missed.
  watch_ = std::make_unique<InterfaceWatch>(parts_.loop, [this] { look(); });
  if (!watch_->works()) {
    parts_.warn("rtnetlink is not available: interfaces are checked each second");
  }
}

UplinkAddresses::~UplinkAddresses() = default;

Result<void> UplinkAddresses::start(const std::string& uplink, SavedAddresses* saved) {
  std::string others;
  for (Address& one : all_) {
    Result<Fd> opened = open_patiently(one.ip);
    if (opened) {
      one.ours = true;
      take(one, std::move(*opened));
    } else if (opened.error().code != EADDRNOTAVAIL) {
      return errorf(opened.error().code, "{}: {}", uplink_said(uplink), opened.error().reason);
    } else if (interface_of(one.ip)) {
      one.ours = true;  // the interface is down, or has yet to check the address
    } else {
      others +=
          fmt::format("{}{} ({})", others.empty() ? "" : ", ", ip_text(one.ip), one.port->name());
    }
  }
  std::vector<Ip> own = ours();
  if (own.empty()) {
    return errorf(EADDRNOTAVAIL, "{}: no address behind it is this machine's: {}",
                  uplink_said(uplink), others.empty() ? "there is no port" : others);
  }
  if (!others.empty()) parts_.warn("not this machine's, so inside only: " + others);
  for (const Ip& ip : own) {
    if (saved && saved->count < SavedAddresses::kMaxAddresses) saved->ours[saved->count++] = ip;
  }
  look();
  return {};
}

// At a takeover the mount's users come before the network, which may come back.
void UplinkAddresses::take_over(const SavedAddresses* saved) {
  bool all = !saved || saved->count == SavedAddresses::kMaxAddresses;
  for (Address& one : all_) {
    one.ours = all || std::count(saved->ours, saved->ours + saved->count, one.ip) > 0;
    if (!one.ours) continue;
    Result<Fd> opened = open_patiently(one.ip);
    if (opened) take(one, std::move(*opened));
  }
  look();
}

void UplinkAddresses::lost(const Ip& address, int code) {
  for (Address& one : all_) {
    if (one.ip != address) continue;
    set_bound(one, false);
    parts_.unbound(one.ip);
    one.trouble = fmt::format("cannot receive any more: {}", std::strerror(code));
    report({ip_text(one.ip) + " " + one.trouble});
  }
  again_.arm(kBetweenTries);
}

// Follows changes of the machine's own addresses.
void UplinkAddresses::look() {
  std::vector<std::string> lines = follow_mtus();
  bool missing = false, waits = false;
  for (Address& one : all_) {
    if (!one.ours) continue;
    std::string trouble = try_to_use(one);
    missing |= !one.bound;
    waits |= one.bound && !trouble.empty();
    if (trouble == one.trouble) continue;
    one.trouble = trouble;
    lines.push_back(
        fmt::format("{}: {}", ip_text(one.ip), trouble.empty() ? "can be used again" : trouble));
  }
  report(std::move(lines));
  parts_.changed();
  if (missing || waits || !watch_->works()) {
    again_.arm(missing ? kBetweenTries : kBetweenLooks);
  } else {
    again_.disarm();
  }
}

// Follows changes of interfaces' MTUs; returns a line for each. An interface too small for RoCE
// carries nothing: sent packets are lost, and counted. A port's MTU is known when all of its
// addresses are checked.
std::vector<std::string> UplinkAddresses::follow_mtus() {
  constexpr uint32_t kMinMtu = 256;
  std::vector<std::pair<Interface, const UplinkedPort*>> changed;
  for (Address& one : all_) {
    std::optional<Interface> interface = one.ours ? interface_of(one.ip) : std::nullopt;
    if (!interface) continue;
    uint32_t mtu = std::clamp(roce_mtu(interface->mtu), kMinMtu, one.port->largest_mtu());
    if (std::exchange(one.mtu, mtu) != mtu) changed.emplace_back(*interface, one.port);
  }
  std::vector<std::string> lines;
  for (const auto& [interface, port] : changed) {
    std::string line = fmt::format("{} has MTU {}: {} has {}", interface.name, interface.mtu,
                                   port->name(), mtu_of(*port));
    if (std::count(lines.begin(), lines.end(), line) == 0) lines.push_back(std::move(line));
  }
  return lines;
}

// Binds an address; returns why it cannot be used.
std::string UplinkAddresses::try_to_use(Address& one) {
  std::string refusal;
  if (!one.bound) {
    Result<Fd> opened = open_receiver(one.ip);
    if (opened) {
      take(one, std::move(*opened));
    } else {
      refusal = opened.error().reason;
      parts_.failures.add();
    }
  }
  std::string trouble = trouble_with(one.ip);
  return trouble.empty() ? refusal : trouble;
}

void UplinkAddresses::take(Address& one, Fd socket) {
  set_bound(one, true);
  parts_.bound(one.ip, std::move(socket));
}

void UplinkAddresses::set_bound(Address& one, bool bound) {
  std::lock_guard lock(binding_);
  one.bound = bound;
}

// Ports take carrier and MTU, on the core's thread, before the lines are logged.
void UplinkAddresses::report(std::vector<std::string> lines) {
  if (lines.empty()) return;
  struct State {
    UplinkedPort* port;
    bool carrier;
    uint32_t mtu;
  };
  std::vector<State> ports;
  for (const Address& one : all_) {
    if (one.ours) ports.push_back({one.port, carrier_of(*one.port), mtu_of(*one.port)});
  }
  parts_.engine.post_retrying([this, ports, lines = std::move(lines)] {
    std::string changed;
    for (auto [port, carrier, mtu] : ports) {
      port->set_mtu(mtu);
      bool before = port->carrier();
      port->set_carrier(carrier);
      if (port->carrier() == before) continue;
      changed += fmt::format("; {} is {}", port->name(), carrier ? "up" : "down");
    }
    parts_.engine.tell_control([this, ports, lines, changed] {
      for (const State& state : ports) state.port->network_changed();
      for (const std::string& line : lines) parts_.warn(line + changed);
    });
  });
}

bool UplinkAddresses::carrier_of(const UplinkedPort& port) const {
  return std::any_of(all_.begin(), all_.end(), [&](const Address& one) {
    return one.port == &port && one.ours && one.trouble.empty();
  });
}

uint32_t UplinkAddresses::mtu_of(const UplinkedPort& port) const {
  uint32_t mtu = port.largest_mtu();
  for (const Address& one : all_) {
    if (one.port == &port && one.ours) mtu = std::min(mtu, one.mtu);
  }
  return mtu;
}

std::vector<Ip> UplinkAddresses::bound() const {
  std::lock_guard lock(binding_);
  std::vector<Ip> some;
  for (const Address& one : all_) {
    if (one.bound) some.push_back(one.ip);
  }
  return some;
}

std::vector<Ip> UplinkAddresses::ours() const {
  std::vector<Ip> some;
  for (const Address& one : all_) {
    if (one.ours) some.push_back(one.ip);
  }
  return some;
}

}  // namespace rocefs
