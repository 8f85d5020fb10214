// Receives from a SOCK_SEQPACKET socket whose peer is not trusted. The kernel closes surplus
// descriptors of a received message on the receiving thread, however long that takes. So a message
// is peeked at before it is taken: an unfit message stays queued, and the Closer drops it with the
// socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/process/closer.h"

namespace rocefs {

struct StrangerMessage {
  enum class Kind {
    kNothing,  // no message yet
    kEnd,      // the peer has closed, or the socket fails
    kMisfit,   // more descriptors than allowed, or than there is room for; the message is not taken
    kReceived,  // the message follows
  };
  Kind kind = Kind::kNothing;
  size_t size = 0;      // the message's own: octets beyond the buffer are lost
  StrangerFd attached;  // if there was one
};

// Never waits. Copies the message's first bytes to `bytes`. With `may_carry` the message may have
// one descriptor, otherwise none.
StrangerMessage receive_from_stranger(const StrangerFd& socket, std::span<uint8_t> bytes,
                                      bool may_carry);

template <class T>
std::span<uint8_t> bytes_of(T& object) {
  return {reinterpret_cast<uint8_t*>(&object), sizeof object};
}

}  // namespace rocefs
