// Messages with descriptors (SCM_RIGHTS) over local sockets.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>

#include "core/base/fd.h"

namespace rocefs {

// Maximum number of descriptors that come with one message.
constexpr size_t kMaxPassed = 8;

// Sends one message with at most kMaxPassed descriptors, which stay open. MSG_DONTWAIT in `flags`:
// EAGAIN instead of waiting. Returns 0 or an errno.
inline int send_message(int socket, const void* data, size_t size,
                        std::span<const int> descriptors = {}, int flags = 0) {
  if (descriptors.size() > kMaxPassed) return EINVAL;
  union {
    cmsghdr header;
    char bytes[CMSG_SPACE(kMaxPassed * sizeof(int))];
  } space{};
  iovec part{const_cast<void*>(data), size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (size_t octets = descriptors.size_bytes()) {
    message.msg_control = &space;
    message.msg_controllen = CMSG_SPACE(octets);
    space.header = {CMSG_LEN(octets), SOL_SOCKET, SCM_RIGHTS};
    std::memcpy(CMSG_DATA(&space.header), descriptors.data(), octets);
  }
  ssize_t sent;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | flags);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? errno : 0;
}
// The same with one descriptor, or none for -1.
inline int send_message(int socket, const void* data, size_t size, int descriptor) {
  std::span<const int> one(&descriptor, descriptor < 0 ? 0 : 1);
  return send_message(socket, data, size, one);
}
// Sends a message of a fixed type without waiting. Whether it was sent.
template <class Message>
bool send_at_once(int socket, const Message& message, std::span<const int> descriptors = {}) {
  return send_message(socket, &message, sizeof message, descriptors, MSG_DONTWAIT) == 0;
}

// Receives one message. Descriptors come in order, without gaps, at most kMaxPassed; those beyond
// `received` are closed. Returns the message's length, 0 at the end, or -1 with errno: EMSGSIZE for
// a message that is longer than `size`.
inline ssize_t receive_message(int socket, void* data, size_t size, std::span<Fd> received,
                               int flags = 0) {
  union {
    cmsghdr header;
    char bytes[CMSG_SPACE(kMaxPassed * sizeof(int))];
  } space{};
  iovec part{data, size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = &space;
  message.msg_controllen = sizeof space;
  ssize_t got;
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return got;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int descriptor;
      std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof descriptor, sizeof descriptor);
      Fd owned(descriptor);
      if (i < received.size()) received[i] = std::move(owned);
    }
  }
  if (!(message.msg_flags & MSG_TRUNC)) return got;
  errno = EMSGSIZE;
  return -1;
}

}  // namespace rocefs
