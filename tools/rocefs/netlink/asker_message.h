// Messages in the memory of an asker, as the calls that send and receive point to them.
#pragma once

#include <linux/seccomp.h>
#include <sys/uio.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/rocefs/netlink/asker.h"

namespace rocefs {

// Where a message of the asker is, or is to be put.
struct AskerMessage {
  std::vector<iovec> parts;
  uint64_t name = 0;         // address of a struct sockaddr, or 0
  uint64_t name_length = 0;  // recvfrom: address of its length
  uint64_t header = 0;       // recvmsg, sendmsg: address of the struct msghdr
  int flags = 0;
};

// Reads the arguments of a call that sends or receives. nullopt: EFAULT.
std::optional<AskerMessage> message_of(const Asker& asker, const seccomp_notif& call);

// Each returns false for EFAULT.
bool write_data(const Asker& asker, const AskerMessage& message, std::string_view data);
// Writes an address as the kernel does: as much as there is room for, and its whole length.
bool write_address(const Asker& asker, uint64_t address, uint64_t length_address, uint32_t port);
// Sets what recvmsg(2) returns in its header. Netlink messages come from port 0, the kernel.
bool write_header(const Asker& asker, const AskerMessage& message, bool cut);

}  // namespace rocefs
