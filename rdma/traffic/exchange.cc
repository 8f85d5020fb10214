#include "rdma/traffic/exchange.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>

#include "rdma/traffic/exchange_message.h"
#include "rdma/uplink/udp_sockets.h"
#include "rdma/wire/ip_text.h"

namespace rocefs {
namespace {

constexpr int kBacklog = 256;
constexpr TimeNs kLeaveWithin = 2 * kSecond;  // what was sent last
constexpr int kSilenceMs = 15'000;            // of a peer's machine, until it has gone

void set(int fd, int level, int name, int value) {
  (void)::setsockopt(fd, level, name, &value, sizeof value);
}

// A machine that has gone says nothing: TCP must ask.
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

ExchangeLine::ExchangeLine(PollLoop& loop, Fd socket, bool connecting, const UdpAddress& peer)
    : loop_(loop),
      socket_(std::move(socket)),
      connecting_(connecting),
      peer_(peer),
      timer_(loop, [this] { overdue(); }) {}

ExchangeLine::~ExchangeLine() {
  close();
}

void ExchangeLine::open(Handlers handlers) {
  handlers_ = std::move(handlers);
  loop_.watch(socket_.get(), [weak = weak_from_this()] {
    if (ExchangeLinePtr self = weak.lock()) self->ready();
  });
  if (connecting_) return loop_.watch_output(socket_.get(), true);
  connected();
}

void ExchangeLine::connected() {
  connecting_ = false;
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  UdpAddress local;
  if (::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&name), &length) == 0 &&
      from_sockaddr(reinterpret_cast<sockaddr&>(name), local)) {
    local_ = local.ip;
  }
  (void)flush();
}

void ExchangeLine::ready() {
  ExchangeLinePtr self = shared_from_this();  // a handler may let go of it
  if (connecting_) {
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return end(std::strerror(error));
    connected();
  }
  if (socket_ && !out_.empty() && !flush()) return;
  if (socket_) take_input();
}

void ExchangeLine::send(std::string_view line) {
  if (!socket_ || leaving_) return;
  out_.append(line);
  out_ += '\n';
  if (!connecting_) (void)flush();
}

// False when the line has ended.
bool ExchangeLine::flush() {
  while (!out_.empty()) {
    ssize_t put = ::send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) break;
    if (put < 0) {  // who waits for it hears of it from the loop
      out_.clear();
      break;
    }
    out_.erase(0, static_cast<size_t>(put));
  }
  loop_.watch_output(socket_.get(), !out_.empty());
  // The far end's close ends it, so that what it has sent does not throw away what we have.
  if (leaving_ && out_.empty()) ::shutdown(socket_.get(), SHUT_WR);
  return true;
}

void ExchangeLine::take_input() {
  std::array<char, 16384> buffer;
  ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got < 0) return end(std::strerror(errno));
  if (got == 0) return end("the connection was closed");
  if (leaving_) return;
  in_.append(buffer.data(), static_cast<size_t>(got));
  if (take_lines() && in_.size() >= kMaxExchangeLine) end("a line has no end");
}

// False when there is nobody any more to take them.
bool ExchangeLine::take_lines() {
  for (size_t feed; (feed = in_.find('\n')) != in_.npos;) {
    if (feed >= kMaxExchangeLine) {
      end("a line is too long");
      return false;
    }
    std::string line = in_.substr(0, feed);
    in_.erase(0, feed + 1);
    expect_within(0);
    auto handler = handlers_.line;  // it may set another
    if (handler) handler(line);
    if (!socket_ || leaving_) return false;
  }
  return true;
}

void ExchangeLine::expect_within(TimeNs after) {
  patience_ = after;
  if (after > 0) {
    timer_.arm(after);
  } else {
    timer_.disarm();
  }
}

void ExchangeLine::overdue() {
  ExchangeLinePtr self = shared_from_this();
  end(fmt::format("no answer within {} s", patience_ / kSecond));
}

void ExchangeLine::hang_up() {
  handlers_ = {};
  if (!socket_ || leaving_) return;
  leaving_ = true;
  in_.clear();
  if (connecting_) return close();
  expect_within(kLeaveWithin);
  (void)flush();
}

void ExchangeLine::end(const std::string& why) {
  close();
  auto ended = std::exchange(handlers_, {}).ended;
  if (ended) ended(why);
}

void ExchangeLine::close() {
  if (!socket_) return;
  timer_.disarm();
  loop_.unwatch(socket_.get());
  socket_.reset();
}

Exchange::Exchange(PollLoop& loop, std::vector<Ip> addresses, Arrived arrived, Warn warn)
    : loop_(loop),
      arrived_(std::move(arrived)),
      warn_(std::move(warn)),
      again_(loop, [this] { listen_again(); }) {
  for (const Ip& address : addresses) listeners_.push_back({address, {}, {}});
}

Exchange::~Exchange() {
  listen(0);
}

void Exchange::listen(uint16_t port) {
  port_ = port;
  again_.disarm();
  for (Listener& listener : listeners_) {
    if (listener.socket) loop_.unwatch(listener.socket.get());
    listener.socket.reset();
    listener.trouble.clear();
    if (port != 0) open(listener);
  }
}

// Its address may come later: it is tried again, and told of once.
void Exchange::open(Listener& listener) {
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

void Exchange::watch(Listener& listener) {
  loop_.watch(listener.socket.get(), [this, &listener] { take(listener); });
}

void Exchange::take(Listener& listener) {
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
  auto line = std::make_shared<ExchangeLine>(loop_, std::move(socket), false, peer);
  lines_.push_back(line);
  line->open({});
  line->expect_within(kFirstLine);
  arrived_(line);
}

// Whoever waits there would wake us all the time.
void Exchange::wait_for_descriptors(Listener& listener) {
  listener.trouble = std::strerror(errno);
  if (!std::exchange(short_, true)) {
    warn_(fmt::format("traffic/exchange: {} port {}: {}", ip_text(listener.address), port_,
                      listener.trouble));
  }
  loop_.unwatch(listener.socket.get());
  again_.arm(kSecond);
}

// Lines without a flow make way for one more of `peer`: the oldest of the address that has most of
// them, so that who floods us only loses its own. False when there is none.
bool Exchange::make_room(const Ip& peer) {
  lines_.remove_if([](const ExchangeLinePtr& line) { return !line->open(); });
  if (lines_.size() < kMaxLines) return true;
  std::map<Ip, size_t> idle;
  for (const ExchangeLinePtr& line : lines_) {
    if (!line->carries_flow()) ++idle[line->peer().ip];
  }
  if (auto own = idle.find(peer); own != idle.end()) ++own->second;
  auto loses = [&](const ExchangeLinePtr& line) {
    if (line->carries_flow()) return size_t{0};
    size_t lines = idle[line->peer().ip];
    return 2 * lines + (line->peer().ip == peer);  // of two equals who comes now
  };
  auto first = std::max_element(lines_.begin(), lines_.end(),
                                [&](const auto& a, const auto& b) { return loses(a) < loses(b); });
  if (loses(*first) == 0) return false;
  lines_.erase(first);
  return true;
}

void Exchange::listen_again() {
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

Result<ExchangeLinePtr> Exchange::connect(const Ip& from, const UdpAddress& to) {
  Result<Fd> opened = open_tcp({from, 0});
  if (!opened) return opened.error();
  sockaddr_storage name{};
  socklen_t length = to_sockaddr(to, name);
  int rc = ::connect(opened->get(), reinterpret_cast<sockaddr*>(&name), length);
  if (rc != 0 && errno != EINPROGRESS) return errorf(errno, "{}", std::strerror(errno));
  own_.remove_if([](const ExchangeLinePtr& line) { return !line->open(); });
  own_.push_back(std::make_shared<ExchangeLine>(loop_, std::move(*opened), rc != 0, to));
  return own_.back();
}

bool Exchange::serves(const Ip& address) const {
  return std::any_of(listeners_.begin(), listeners_.end(),
                     [&](const Listener& listener) { return listener.address == address; });
}

std::string Exchange::text() const {
  std::string text;
  for (const Listener& listener : listeners_) {
    std::string state = listener.trouble;
    if (state.empty()) state = listener.socket ? "listening" : "off";
    text += fmt::format("{} port {}: {}\n", ip_text(listener.address), port_, state);
  }
  auto open = std::count_if(lines_.begin(), lines_.end(),
                            [](const ExchangeLinePtr& line) { return line->open(); });
  return text + fmt::format("connections {}\n", open);
}

}  // namespace rocefs
