#include "rdma/traffic/flow_rendezvous.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "rdma/uplink/udp_sockets.h"
#include "rdma/wire/ip_text.h"

namespace rocefs {
namespace {

constexpr int kBacklog = 256;
constexpr int kSilenceMs = 15'000;  // of a peer's machine, until it counts as gone

void set(int fd, int level, int name, int value) {
  (void)::setsockopt(fd, level, name, &value, sizeof value);
}

// Keepalives notice a machine that has gone.
void prepare(int fd) {
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, 2);
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kSilenceMs);
}

Result<Fd> open_tcp(const UdpAddress& at) {
  sockaddr_storage name{};
  socklen_t length = to_sockaddr(at, name);
  Fd fd(::socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!fd) return errorf(errno, "no socket: {}", std::strerror(errno));
  if (name.ss_family == AF_INET6) set(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  prepare(fd.get());
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&name), length) == 0) return fd;
  return errorf(errno, "{} port {}: {}", ip_text(at.ip), at.port, std::strerror(errno));
}

}  // namespace

FlowRendezvous::FlowRendezvous(PollLoop& loop, std::vector<Ip> addresses, Arrived arrived,
                               Warn warn)
    : loop_(loop),
      arrived_(std::move(arrived)),
      warn_(std::move(warn)),
      again_(loop, [this] { listen_again(); }) {
  for (const Ip& address : addresses) listeners_.push_back({address, {}, {}});
}

FlowRendezvous::~FlowRendezvous() {
  listen(0);
}

void FlowRendezvous::listen(uint16_t port) {
  port_ = port;
  again_.disarm();
  for (Listener& listener : listeners_) {
    if (listener.socket) loop_.unwatch(listener.socket.get());
    listener.socket.reset();
    listener.trouble.clear();
    if (port != 0) open(listener);
  }
}

// The address may come later: it is tried again, and each trouble is warned of once.
void FlowRendezvous::open(Listener& listener) {
  Result<Fd> opened = open_tcp({listener.address, port_});
  if (opened && ::listen(opened->get(), kBacklog) != 0) {
    opened =
        errorf(errno, "{} port {}: {}", ip_text(listener.address), port_, std::strerror(errno));
  }
  std::string trouble = opened ? "" : opened.error().reason;
  if (!opened) {
    if (trouble != listener.trouble) warn_("traffic/exchange: " + trouble);
    again_.arm(kSecond);
  }
  listener.trouble = trouble;
  if (!opened) return;
  listener.socket = std::move(*opened);
  watch(listener);
}

void FlowRendezvous::watch(Listener& listener) {
  loop_.watch(listener.socket.get(), [this, &listener] { take(listener); });
}

void FlowRendezvous::take(Listener& listener) {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  Fd socket(::accept4(listener.socket.get(), reinterpret_cast<sockaddr*>(&name), &length,
                      SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) {
    if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS) return;
    return wait_for_descriptors(listener);
  }
  short_ = false;
  UdpAddress peer;
  if (!from_sockaddr(reinterpret_cast<sockaddr&>(name), peer)) return;
  if (!make_room(peer.ip)) {
    std::string_view full = "fail there are as many connections as there may be\n";
    (void)!::send(socket.get(), full.data(), full.size(), MSG_NOSIGNAL);
    return;
  }
  prepare(socket.get());
  auto line = std::make_shared<RendezvousLine>(loop_, std::move(socket), false, peer);
  lines_.push_back(line);
  line->open({});
  line->expect_within(kFirstLine);
  arrived_(line);
}

// Connections that wait would wake the loop all the time.
void FlowRendezvous::wait_for_descriptors(Listener& listener) {
  listener.trouble = std::strerror(errno);
  if (!std::exchange(short_, true)) {
    warn_(fmt::format("traffic/exchange: {} port {}: {}", ip_text(listener.address), port_,
                      listener.trouble));
  }
  loop_.unwatch(listener.socket.get());
  again_.arm(kSecond);
}

// A line without a flow makes way for one more of `peer`: the oldest of the address that has most
// of them, so that a flood only costs its own address. False when there is none.
bool FlowRendezvous::make_room(const Ip& peer) {
  lines_.remove_if([](const RendezvousLinePtr& line) { return !line->open(); });
  if (lines_.size() < kMaxLines) return true;
  std::map<Ip, size_t> idle;
  for (const RendezvousLinePtr& line : lines_) {
    if (!line->carries_flow()) ++idle[line->peer().ip];
  }
  if (auto own = idle.find(peer); own != idle.end()) ++own->second;
  auto loses = [&](const RendezvousLinePtr& line) {
    if (line->carries_flow()) return size_t{0};
    size_t lines = idle[line->peer().ip];
    return 2 * lines + (line->peer().ip == peer);  // of two equals the newcomer
  };
  auto first = std::max_element(lines_.begin(), lines_.end(),
                                [&](const auto& a, const auto& b) { return loses(a) < loses(b); });
  if (loses(*first) == 0) return false;
  lines_.erase(first);
  return true;
}

void FlowRendezvous::listen_again() {
  for (Listener& listener : listeners_) {
    if (listener.trouble.empty()) continue;
    if (!listener.socket) {
      open(listener);
      continue;
    }
    listener.trouble.clear();
    watch(listener);
  }
}

Result<RendezvousLinePtr> FlowRendezvous::connect(const Ip& from, const UdpAddress& to) {
  Result<Fd> opened = open_tcp({from, 0});
  if (!opened) return opened.error();
  sockaddr_storage name{};
  socklen_t length = to_sockaddr(to, name);
  int rc = ::connect(opened->get(), reinterpret_cast<sockaddr*>(&name), length);
  if (rc != 0 && errno != EINPROGRESS) return errorf(errno, "{}", std::strerror(errno));
  own_.remove_if([](const RendezvousLinePtr& line) { return !line->open(); });
  own_.push_back(std::make_shared<RendezvousLine>(loop_, std::move(*opened), rc != 0, to));
  return own_.back();
}

bool FlowRendezvous::serves(const Ip& address) const {
  return std::any_of(listeners_.begin(), listeners_.end(),
                     [&](const Listener& listener) { return listener.address == address; });
}

std::string FlowRendezvous::text() const {
  std::string text;
  for (const Listener& listener : listeners_) {
    std::string state = listener.trouble;
    if (state.empty()) state = listener.socket ? "listening" : "off";
    text += fmt::format("{} port {}: {}\n", ip_text(listener.address), port_, state);
  }
  auto open = std::count_if(lines_.begin(), lines_.end(),
                            [](const RendezvousLinePtr& line) { return line->open(); });
  return text + fmt::format("connections {}\n", open);
}

}  // namespace rocefs
