#include "core/process/stranger_socket.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace rocefs {
namespace {

// Room for one descriptor. The kernel is told the exact size: with the padding, two would fit.
union RoomForOne {
  cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int))];
};

}  // namespace

// A peek leaves the message queued, so the kernel closes none of its descriptors for good: our
// table holds them.
StrangerMessage receive_from_stranger(const StrangerFd& socket, std::span<uint8_t> bytes,
                                      bool may_carry) {
  using Kind = StrangerMessage::Kind;
  StrangerMessage received;
  iovec part{bytes.data(), bytes.size()};
  RoomForOne space{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = may_carry ? &space : nullptr;
  message.msg_controllen = may_carry ? CMSG_LEN(sizeof(int)) : 0;
  constexpr int kLook = MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT | MSG_CMSG_CLOEXEC;
  ssize_t got = ::recvmsg(socket.get(), &message, kLook);
  bool nothing = got < 0 && (errno == EAGAIN || errno == EINTR);
  if (got <= 0) {
    received.kind = nothing ? Kind::kNothing : Kind::kEnd;
    return received;
  }
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    int descriptor;
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    received.attached = socket.of_same(Fd(descriptor));
  }
  received.size = static_cast<size_t>(got);
  received.kind = (message.msg_flags & MSG_CTRUNC) != 0 ? Kind::kMisfit : Kind::kReceived;
  char first;
  if (received.kind == Kind::kReceived) (void)!::recv(socket.get(), &first, 1, MSG_DONTWAIT);
  return received;
}

}  // namespace rocefs
