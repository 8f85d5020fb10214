#include "rdma/host/hosts.h"

#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "core/tree/function_file.h"
#include "rdma/host/interface_text.h"
#include "rdma/host/link_text.h"
#include "rdma/host/namespace_text.h"
#include "rdma/host/processes_file.h"
#include "rdma/nic/device.h"
#include "rdma/nic/port_ids.h"
#include "rdma/wire/ip_text.h"

namespace rocefs {
namespace {

bool is_route_socket(int fd) {
  int domain = 0, protocol = 0;
  socklen_t size = sizeof domain, protocol_size = sizeof protocol;
  return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_NETLINK &&
         ::getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &protocol_size) == 0 &&
         protocol == NETLINK_ROUTE;
}

bool is_namespace(int fd, size_t number) {
  constexpr const char* kNames[] = {"user:[", "mnt:[", "uts:[", "net:["};
  static_assert(std::size(kNames) == ROCEFS_HOST_NAMESPACES && ROCEFS_HOST_NET == 3);
  return namespace_text(fd).starts_with(kNames[number]);
}

}  // namespace

Hosts::Hosts(Engine& engine, PollLoop& loop, Fabric& fabric, Tree& tree,
             const std::string& directory, Log log)
    : engine_(engine), loop_(loop), fabric_(fabric), log_(std::move(log)) {
  for (const auto& device : fabric.devices()) {
    const std::string& wanted = device->spec().host;
    Host& host = find_or_add(wanted.empty() ? device->name() : wanted);
    host.devices.push_back(device.get());
    for (size_t number = 1; number <= device->port_count(); ++number) {
      host.interfaces.emplace_back().port = &device->port(number);
    }
  }
  add_files(tree, directory);
}

Hosts::~Hosts() {
  for (const auto& host : hosts_) {
    for (HostInterface& interface : host->interfaces) {
      if (interface.channel) interface.channel->abandon();
    }
  }
}

void Hosts::add_files(Tree& tree, const std::string& directory) {
  tree.add_later(directory, [this, &tree, directory] {
    for (const auto& one : hosts_) {
      std::string at = directory + "/" + one->name;
      tree.add_later(at, [this, &tree, at, host = one.get()] { add_files(tree, at, host); });
    }
  });
}

void Hosts::add_files(Tree& tree, const std::string& at, Host* host) {
  std::string devices, interfaces;
  for (const Device* device : host->devices) devices += device->name() + "\n";
  for (const HostInterface& interface : host->interfaces) {
    interfaces += interface_text(*interface.port) + "\n";
  }
  auto add = [&](const char* name, std::string text, std::string_view doc) {
    tree.add_file(at + name, std::make_shared<FunctionStream>([text] { return text; }, doc));
  };
  add("/devices", devices, "RDMA devices of the host, one a line");
  add("/interfaces", interfaces,
      "network interfaces of the host, one a line: name, MAC, MTU, speed in Mb/s and addresses "
      "with which it starts");
  tree.add_file(at + "/state", read_only(
                                   [host]() -> Result<std::string> {
                                     if (host->attached) return std::string("attached");
                                     return std::string(host->running ? "running" : "off");
                                   },
                                   "running, attached, or off until the first `rocefs host`"));
  auto network = [host] { return host->running ? host->network : std::string(); };
  tree.add_file(at + "/namespace",
                read_only([network]() -> Result<std::string> { return network(); },
                          "the host's network namespace, net:[INODE]; empty while it is off"));
  tree.add_file(at + "/processes", std::make_shared<ProcessesFile>(engine_, worker_, network));
}

const Host* Hosts::of_process(pid_t pid) const {
  std::string network = link_text(fmt::format("/proc/{}/ns/net", pid));
  auto it = std::find_if(hosts_.begin(), hosts_.end(), [&](const auto& host) {
    return host->running && host->network == network;
  });
  return it == hosts_.end() ? nullptr : it->get();
}

NeighbourSearch* Hosts::neighbours(const PortHost& device) const {
  for (const auto& host : hosts_) {
    bool has = std::count(host->devices.begin(), host->devices.end(), &device) > 0;
    if (has && host->running) return &host->watch->neighbours();
  }
  return nullptr;
}

Host& Hosts::find_or_add(const std::string& name) {
  if (Host* host = find(name)) return *host;
  hosts_.push_back(std::make_unique<Host>());
  hosts_.back()->name = name;
  by_name_[name] = hosts_.back().get();
  return *hosts_.back();
}

Host* Hosts::find(std::string_view name) {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

bool Hosts::all_running() const {
  return std::all_of(hosts_.begin(), hosts_.end(), [](const auto& host) { return host->running; });
}

HostParts& Hosts::parts_of(Host& host) {
  if (!host.given) {
    host.given = std::make_unique<HostParts>();
    host.given->taps.resize(host.interfaces.size());
  }
  return *host.given;
}

void Hosts::plug(Host& host, size_t number, StrangerFd fd, Answer<void> answer) {
  if (number >= host.interfaces.size()) {
    return answer(errorf(EINVAL, "{} has no interface {}", host.name, number));
  }
  std::shared_ptr<Tap>& given = parts_of(host).taps[number];
  const std::string& name = host.interfaces[number].port->spec().netdev;
  if (given) return answer(errorf(EBUSY, "{} of {} is plugged in already", name, host.name));
  Result<std::shared_ptr<Tap>> tap = Tap::of(std::move(fd), worker_);
  if (!tap) return answer(tap.error());
  given = *tap;
  auto done = [this, &host, number, tap = *tap,
               kept = std::move(answer)](Result<void> good) mutable {
    engine_.tell_control([&host, number, tap, good, kept = std::move(kept)]() mutable {
      bool waits = host.given && host.given->taps[number] == tap;
      if (!good && waits) host.given->taps[number].reset();
      kept(good);
    });
  };
  (*tap)->prepare(name, std::move(done));
}

PacketCore& Hosts::core_of(Port& port) {
  return engine_.core(port.host().fabric().core());
}

void Hosts::plug_in(Host& host, size_t number) {
  HostInterface& interface = host.interfaces[number];
  PacketCore& core = core_of(*interface.port);
  auto made = std::make_unique<TapChannel>(core, *interface.port, interface.tap);
  interface.channel = made.get();
  core.run([&core, channel = std::move(made)]() mutable {
    TapChannel& started = *channel;
    core.io().adopt(std::move(channel));
    started.start();
  });
}

void Hosts::unplug(HostInterface& interface) {
  interface.tap.reset();
  interface.left_out.clear();
  if (TapChannel* channel = std::exchange(interface.channel, nullptr)) {
    core_of(*interface.port).run([channel] { channel->end(); });
  }
}

Result<void> Hosts::watch(Host& host, StrangerFd route) {
  StrangerFd& given = parts_of(host).route;
  if (given) return errorf(EBUSY, "{} is watched already", host.name);
  if (!route || !is_route_socket(route.get()))
    return Error{EINVAL, "a socket of rtnetlink is wanted"};
  given = std::move(route);
  return {};
}

Result<void> Hosts::park(Host& host, size_t number, StrangerFd route) {
  auto& given = parts_of(host).parking_sockets;
  if (number >= given.size()) return Error{EINVAL, "there are two such sockets"};
  if (given[number]) return errorf(EBUSY, "{} has this socket already", host.name);
  if (!route || !is_route_socket(route.get()))
    return Error{EINVAL, "a socket of rtnetlink is wanted"};
  given[number] = std::move(route);
  return {};
}

Result<void> Hosts::set_namespace(Host& host, size_t number, StrangerFd fd) {
  auto& given = parts_of(host).namespaces;
  if (number >= given.size()) return Error{EINVAL, "there is no such kind of namespace"};
  if (given[number]) return errorf(EBUSY, "{} has this namespace already", host.name);
  if (!fd || !is_namespace(fd.get(), number)) return Error{EINVAL, "a namespace is wanted"};
  given[number] = std::move(fd);
  return {};
}

Result<void> Hosts::check_network(const Host& host, const StrangerFd& network) const {
  if (!network || !is_namespace(network.get(), ROCEFS_HOST_NET))
    return Error{EINVAL, "a network namespace is wanted"};
  return check_network(host, namespace_text(network.get()));
}

// The connection manager knows a program's host by its network namespace alone.
Result<void> Hosts::check_network(const Host& host, const std::string& network) const {
  for (const auto& other : hosts_) {
    if (other.get() == &host || !other->running || other->network != network) continue;
    return errorf(EBUSY, "host {} is in that network namespace", other->name);
  }
  return {};
}

Result<void> Hosts::start(Host& host, bool attached, uid_t maker) {
  const HostParts& given = parts_of(host);
  auto all = [](const auto& parts) {
    return std::all_of(parts.begin(), parts.end(), [](const auto& part) { return bool(part); });
  };
  if (!all(given.taps) || !all(given.namespaces) || !all(given.parking_sockets) || !given.route)
    return errorf(EINVAL, "a part of {} is missing", host.name);
  std::string network = namespace_text(given.namespaces[ROCEFS_HOST_NET].get());
  if (Result<void> alone = check_network(host, network); !alone) return alone;
  std::unique_ptr<HostParts> parts = std::move(host.given);
  stop(host);
  for (size_t number = 0; number < host.interfaces.size(); ++number) {
    host.interfaces[number].tap = std::move(parts->taps[number]);
    plug_in(host, number);
  }
  host.namespaces = std::move(parts->namespaces);
  host.watch = std::make_unique<RouteWatch>(
      loop_, std::move(parts->route),
      [this, &host](const std::string& name, const RouteWatch::State* state) {
        interface_changed(host, name, state);
      });
  auto& [in_host, in_parking] = parts->parking_sockets;
  host.parking = std::make_shared<InterfaceParking>(std::move(in_host), std::move(in_parking));
  host.attached = attached;
  host.maker = maker;
  host.running = true;
  host.network = std::move(network);
  for (const Device* device : host.devices) {
    if (unbound_.contains(device)) park_interfaces(host, *device);
  }
  keep_all(host, true);
  return {};
}

namespace {

std::string tap_name(const Host& host, size_t number) {
  return fmt::format("{}/tap{}", host.name, number);
}
std::string namespace_name(const Host& host, size_t number) {
  return fmt::format("{}/namespace{}", host.name, number);
}
std::string route_name(const Host& host) {
  return host.name + "/route";
}
std::string parking_name(const Host& host, size_t number) {
  return fmt::format("{}/parking{}", host.name, number);
}
// A descriptor by a name with this beginning tells the next process who made the host: a user's
// number ends the name.
std::string maker_name(const Host& host) {
  return host.name + "/maker";
}
// A descriptor by this name tells the next process that the host is attached.
std::string attached_name(const Host& host) {
  return host.name + "/attached";
}

}  // namespace

void Hosts::keep_all(const Host& host, bool wanted) const {
  if (!keep_) return;
  auto keep = [&](const std::string& name, int descriptor) {
    keep_(name, wanted ? descriptor : -1);
  };
  for (size_t i = 0; i < host.interfaces.size(); ++i) {
    if (const auto& tap = host.interfaces[i].tap) keep(tap_name(host, i), tap->descriptor());
  }
  for (size_t i = 0; i < host.namespaces.size(); ++i) {
    if (host.namespaces[i]) keep(namespace_name(host, i), host.namespaces[i].get());
  }
  if (host.watch) keep(route_name(host), host.watch->descriptor());
  if (host.parking) {
    keep(parking_name(host, 0), host.parking->host_socket());
    keep(parking_name(host, 1), host.parking->parking_socket());
  }
  int network = host.namespaces[ROCEFS_HOST_NET].get();
  if (host.running) keep(fmt::format("{}{}", maker_name(host), host.maker), network);
  if (host.attached) keep(attached_name(host), network);
}

void Hosts::keep(Keep keep, std::map<std::string, Fd> kept, const Closer& closer) {
  for (const auto& host : hosts_) {
    if (!restore(*host, kept, closer)) forget(*host);
  }
  keep_ = std::move(keep);
}

// False unless all of the host was kept.
bool Hosts::restore(Host& host, std::map<std::string, Fd>& kept, const Closer& closer) {
  auto take = [&](const std::string& name) {
    auto it = kept.find(name);
    if (it == kept.end()) return StrangerFd{};
    return StrangerFd(std::move(it->second), closer, ::geteuid());
  };
  HostParts& parts = parts_of(host);
  for (size_t i = 0; i < parts.taps.size(); ++i) {
    Result<std::shared_ptr<Tap>> tap = Tap::of(take(tap_name(host, i)), worker_);
    if (!tap) return false;
    parts.taps[i] = *tap;
  }
  for (size_t i = 0; i < parts.namespaces.size(); ++i) {
    parts.namespaces[i] = take(namespace_name(host, i));
  }
  for (size_t i = 0; i < parts.parking_sockets.size(); ++i) {
    parts.parking_sockets[i] = take(parking_name(host, i));
  }
  bool attached = kept.count(attached_name(host)) != 0;
  auto maker = kept.lower_bound(maker_name(host));
  if (maker == kept.end() || !maker->first.starts_with(maker_name(host))) return false;
  auto user = std::strtoul(maker->first.c_str() + maker_name(host).size(), nullptr, 10);
  return watch(host, take(route_name(host))) && start(host, attached, static_cast<uid_t>(user));
}

namespace {

// Makes the port's GIDs those of the interface's addresses, and returns addresses that the table
// has no room for. GID 0 is the MAC's own and stays.
std::set<Ip> set_gids(Fabric& fabric, Port& port, const std::set<Ip>& addresses) {
  Device& device = device_of(port);
  for (const Ip& gid : GidTable::Entries(port.gids().entries())) {
    if (gid != Ip{} && !addresses.count(gid)) device.remove_gid(port.number(), gid);
  }
  for (const Ip& address : addresses) {
    if (device.add_gid(port.number(), address)) fabric.add_address(port, address);
  }
  std::set<Ip> left_out;
  for (const Ip& address : addresses) {
    if (!port.gids().has(address)) left_out.insert(address);
  }
  return left_out;
}

// An interface too small for RoCE leaves the port with the least MTU.
uint32_t port_mtu(uint32_t interface_mtu, const Port& port) {
  constexpr uint32_t kMinMtu = 256;
  return std::clamp(path_mtu_of(interface_mtu), kMinMtu, port.largest_mtu());
}

}  // namespace

// An interface that is down, or has gone, leaves the port without carrier and keeps its addresses.
void Hosts::interface_changed(Host& host, const std::string& name, const RouteWatch::State* state) {
  auto it = std::find_if(host.interfaces.begin(), host.interfaces.end(),
                         [&](const auto& one) { return one.port->spec().netdev == name; });
  if (it == host.interfaces.end()) return;
  auto number = static_cast<size_t>(it - host.interfaces.begin());
  RouteWatch::State now = state ? *state : RouteWatch::State{};
  engine_.post_retrying([this, &host, number, port = it->port, now] {
    port->set_host_carrier(now.up);
    if (now.mtu > 0) port->set_host_mtu(port_mtu(now.mtu, *port));
    std::set<Ip> left_out;
    if (now.up) left_out = set_gids(fabric_, *port, now.addresses);
    Port::Shown shown{port->gids().entries(), now.mtu};
    engine_.tell_control([this, &host, number, port, shown, up = now.up, left_out] {
      port->show(shown);
      port->network_changed();
      if (up) say_left_out(host.interfaces[number], left_out);
    });
  });
}

// Says once of each address that it is no GID.
void Hosts::say_left_out(HostInterface& interface, const std::set<Ip>& addresses) {
  for (const Ip& address : addresses) {
    if (interface.left_out.count(address)) continue;
    say_limited(fmt::format("{}: {} is no GID: its table has {} entries", interface.port->name(),
                            ip_text(address), GidTable::kSize));
  }
  interface.left_out = addresses;
}

void Hosts::say_limited(const std::string& line) {
  auto say = [this](const std::string& text) {
    log_(LogLevel::kWarning, text);
    return true;
  };
  if (said_.admit(monotonic_ns(), say)) say(line);
}

std::vector<InterfaceLine> Hosts::lines_of(const Host& host) const {
  std::vector<InterfaceLine> lines;
  for (const HostInterface& interface : host.interfaces) {
    if (auto line = parse_interface(interface_text(*interface.port))) lines.push_back(*line);
  }
  return lines;
}

void Hosts::change_network(std::function<Result<void>()> change) {
  worker_.post([this, change = std::move(change)] {
    Result<void> done = change();
    if (done) return;
    engine_.tell_control([this, why = done.error().reason] {
      log_(LogLevel::kErr, "an interface does not follow its device's driver: " + why);
    });
  });
}

void Hosts::park_interfaces(const Host& host, const Device& device) {
  for (const HostInterface& interface : host.interfaces) {
    if (&device_of(*interface.port) != &device) continue;
    change_network([parking = host.parking, name = interface.port->spec().netdev] {
      return parking->take(name);
    });
  }
}

void Hosts::put_back_interfaces(const Host& host, const Device& device) {
  const std::vector<InterfaceLine> lines = lines_of(host);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (&device_of(*host.interfaces[i].port) != &device) continue;
    std::vector<InterfaceLine> others;
    for (const auto& other : hosts_) {
      if (i != 0 || other.get() == &host) continue;
      for (InterfaceLine& line : lines_of(*other)) others.push_back(std::move(line));
    }
    change_network(
        [parking = host.parking, line = lines[i], routes = networks_beyond(lines, others)] {
          return parking->put_back(line, routes);
        });
  }
}

void Hosts::bound(Tree&, const std::string&, Device& device) {
  if (unbound_.erase(&device) == 0) return;
  for (const auto& host : hosts_) {
    if (host->running) put_back_interfaces(*host, device);
  }
}

void Hosts::unbound(Device& device) {
  unbound_.insert(&device);
  for (const auto& host : hosts_) {
    if (host->running) park_interfaces(*host, device);
  }
}

void Hosts::when_settled(Task done) {
  bool running =
      std::any_of(hosts_.begin(), hosts_.end(), [](const auto& host) { return host->running; });
  if (!running) return done();
  worker_.post([this, done = std::move(done)]() mutable { engine_.tell_control(std::move(done)); });
}

void Hosts::forget_namespaces() {
  for (const auto& host : hosts_) {
    for (size_t i = 0; i < host->namespaces.size(); ++i) {
      if (!host->namespaces[i]) continue;
      if (keep_) keep_(namespace_name(*host, i), -1);
      host->namespaces[i].reset();
    }
  }
}

void Hosts::stop(Host& host) {
  if (host.running) keep_all(host, false);
  for (HostInterface& interface : host.interfaces) unplug(interface);
  for (StrangerFd& fd : host.namespaces) fd.reset();
  host.watch.reset();
  host.parking.reset();
  host.running = host.attached = false;
}

}  // namespace rocefs
