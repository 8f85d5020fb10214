// Receives from a SOCK_SEQPACKET socket whose other end is a stranger's. What the kernel closes
// while it takes a message from the queue, because it is more than there is room for, it closes on
// the thread that receives, however long that takes. So nothing is taken before it is looked at:
// what should not be there stays, for the Closer to drop with the socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/process/closer.h"

namespace rocefs {

struct StrangerMessage {
  enum class Kind {
    kNothing,   // yet
    kEnd,       // the other end is closed, or the socket fails
    kMisfit,    // more descriptors than there may be, or than there is room for; it is not taken
    kReceived,  // with what follows
  };
  Kind kind = Kind::kNothing;
  size_t size = 0;      // its own: it may be more than was asked for, and the rest is lost
  StrangerFd attached;  // if there was one
};

// At once. The message's first bytes are put into `bytes`. With `may_carry` it may have one
// descriptor, otherwise none.
StrangerMessage receive_from_stranger(const StrangerFd& socket, std::span<uint8_t> bytes,
                                      bool may_carry);

template <class T>
std::span<uint8_t> bytes_of(T& object) {
  return {reinterpret_cast<uint8_t*>(&object), sizeof object};
}

}  // namespace rocefs
