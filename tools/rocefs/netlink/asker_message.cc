#include "tools/rocefs/netlink/asker_message.h"

#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>

namespace rocefs {

std::optional<AskerMessage> message_of(const Asker& asker, const seccomp_notif& call) {
  const auto& args = call.data.args;
  AskerMessage message;
  if (call.data.nr == SYS_sendto || call.data.nr == SYS_recvfrom) {
    message.parts.push_back({reinterpret_cast<void*>(args[1]), args[2]});
    message.flags = static_cast<int>(args[3]);
    message.name = args[4];
    message.name_length = args[5];
    return message;
  }
  if (call.data.nr == SYS_write) {
    message.parts.push_back({reinterpret_cast<void*>(args[1]), args[2]});
    return message;
  }
  constexpr size_t kMostParts = 64;
  if (call.data.nr == SYS_writev) {
    if (args[2] > kMostParts) return std::nullopt;
    message.parts.resize(args[2]);
    if (!asker.read(args[1], message.parts.data(), args[2] * sizeof(iovec))) return std::nullopt;
    return message;
  }
  msghdr header;
  if (!asker.read(args[1], &header, sizeof header) || header.msg_iovlen > kMostParts) {
    return std::nullopt;
  }
  message.header = args[1];
  message.flags = static_cast<int>(args[2]);
  message.name = reinterpret_cast<uint64_t>(header.msg_name);
  message.parts.resize(header.msg_iovlen);
  if (!asker.read(reinterpret_cast<uint64_t>(header.msg_iov), message.parts.data(),
                  message.parts.size() * sizeof(iovec))) {
    return std::nullopt;
  }
  return message;
}

bool write_address(const Asker& asker, uint64_t address, uint64_t length_address, uint32_t port) {
  if (!address) return true;
  sockaddr_nl name{};
  name.nl_family = AF_NETLINK;
  name.nl_pid = port;
  socklen_t room = 0, length = sizeof name;
  return asker.read(length_address, &room, sizeof room) &&
         asker.write(address, &name, std::min<size_t>(room, sizeof name)) &&
         asker.write(length_address, &length, sizeof length);
}

bool write_data(const Asker& asker, const AskerMessage& message, std::string_view data) {
  for (const iovec& part : message.parts) {
    size_t size = std::min(part.iov_len, data.size());
    if (!asker.write(reinterpret_cast<uint64_t>(part.iov_base), data.data(), size)) return false;
    data.remove_prefix(size);
  }
  return true;
}

bool write_header(const Asker& asker, const AskerMessage& message, bool cut) {
  msghdr header;
  if (!asker.read(message.header, &header, sizeof header)) return false;
  sockaddr_nl name{};
  name.nl_family = AF_NETLINK;
  if (header.msg_name &&
      !asker.write(message.name, &name, std::min<size_t>(header.msg_namelen, sizeof name))) {
    return false;
  }
  header.msg_namelen = header.msg_name ? sizeof name : 0;
  header.msg_controllen = 0;
  header.msg_flags = cut ? MSG_TRUNC : 0;
  return asker.write(message.header, &header, sizeof header);
}

}  // namespace rocefs
