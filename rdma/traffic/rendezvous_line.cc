#include "rdma/traffic/rendezvous_line.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "rdma/traffic/rendezvous_message.h"
#include "rdma/uplink/udp_sockets.h"

namespace rocefs {
namespace {

constexpr TimeNs kLeaveWithin = 2 * kSecond;  // for the last lines

}  // namespace

RendezvousLine::RendezvousLine(PollLoop& loop, Fd socket, bool connecting, const UdpAddress& peer)
    : loop_(loop),
      socket_(std::move(socket)),
      connecting_(connecting),
      peer_(peer),
      timer_(loop, [this] { overdue(); }) {}

RendezvousLine::~RendezvousLine() {
  close();
}

void RendezvousLine::open(Handlers handlers) {
  handlers_ = std::move(handlers);
  loop_.watch(socket_.get(), [weak = weak_from_this()] {
    if (RendezvousLinePtr self = weak.lock()) self->ready();
  });
  if (connecting_) return loop_.watch_output(socket_.get(), true);
  connected();
}

void RendezvousLine::connected() {
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

void RendezvousLine::ready() {
  RendezvousLinePtr self = shared_from_this();  // a handler may drop it
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

void RendezvousLine::send(std::string_view line) {
  if (!socket_ || leaving_) return;
  out_.append(line);
  out_ += '\n';
  if (!connecting_) (void)flush();
}

// False when the line has ended.
bool RendezvousLine::flush() {
  while (!out_.empty()) {
    ssize_t put = ::send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) break;
    if (put < 0) {  // the loop reports it, by an error of recv()
      out_.clear();
      break;
    }
    out_.erase(0, static_cast<size_t>(put));
  }
  loop_.watch_output(socket_.get(), !out_.empty());
  // The far end closes: a close here would reset the connection where input is unread, and the
  // far end would lose the last lines.
  if (leaving_ && out_.empty()) ::shutdown(socket_.get(), SHUT_WR);
  return true;
}

void RendezvousLine::take_input() {
  std::array<char, 16384> buffer;
  ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got < 0) return end(std::strerror(errno));
  if (got == 0) return end("the connection was closed");
  if (leaving_) return;
  in_.append(buffer.data(), static_cast<size_t>(got));
  if (take_lines() && in_.size() >= kMaxRendezvousLine) end("a line has no end");
}

// False when the line has ended or was hung up.
bool RendezvousLine::take_lines() {
  for (size_t feed; (feed = in_.find('\n')) != in_.npos;) {
    if (feed >= kMaxRendezvousLine) {
      end("a line is too long");
      return false;
    }
    std::string line = in_.substr(0, feed);
    in_.erase(0, feed + 1);
    expect_within(0);
    auto handler = handlers_.line;  // which may be replaced meanwhile
    if (handler) handler(line);
    if (!socket_ || leaving_) return false;
  }
  return true;
}

void RendezvousLine::expect_within(TimeNs after) {
  patience_ = after;
  if (after > 0) {
    timer_.arm(after);
  } else {
    timer_.disarm();
  }
}

void RendezvousLine::overdue() {
  RendezvousLinePtr self = shared_from_this();
  end(fmt::format("no answer within {} s", patience_ / kSecond));
}

void RendezvousLine::hang_up() {
  handlers_ = {};
  if (!socket_ || leaving_) return;
  leaving_ = true;
  in_.clear();
  if (connecting_) return close();
  expect_within(kLeaveWithin);
  (void)flush();
}

void RendezvousLine::end(const std::string& why) {
  close();
  auto ended = std::exchange(handlers_, {}).ended;
  if (ended) ended(why);
}

void RendezvousLine::close() {
  if (!socket_) return;
  timer_.disarm();
  loop_.unwatch(socket_.get());
  socket_.reset();
}

}  // namespace rocefs
