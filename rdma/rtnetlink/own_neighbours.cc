#include "rdma/rtnetlink/own_neighbours.h"

#include <linux/netlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace rocefs {

OwnNeighbours::OwnNeighbours(PollLoop& loop) : loop_(loop) {}

OwnNeighbours::~OwnNeighbours() {
  if (search_) loop_.unwatch(socket_.get());
}

NeighbourSearch* OwnNeighbours::search() {
  if (search_) return &*search_;
  socket_ = Fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  if (!socket_) return nullptr;
  search_.emplace(loop_, socket_.get(), NeighbourSearch::Network::kOwn);
  loop_.watch(socket_.get(), [this] { receive(); });
  return &*search_;
}

void OwnNeighbours::receive() {
  std::array<uint8_t, 32 << 10> bytes;
  ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
  if (got > 0) return search_->receive(std::span(bytes).first(static_cast<size_t>(got)));
  if (got < 0 && errno == ENOBUFS) search_->messages_lost();
}

}  // namespace rocefs
