// Parts of both kinds of CoreIo.
#pragma once

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <list>
#include <memory>
#include <utility>

#include "core/loop/core_io.h"

namespace rocefs {

// Name and ancillary data of a datagram stand before its payload, each as long as was asked for, so
// that the payload of every datagram begins at the same place of a buffer.
inline constexpr size_t kName = 32;      // a sockaddr_in6, padded to 8 octets
inline constexpr size_t kControl = 128;  // five small items
static_assert(kName >= sizeof(sockaddr_in6) && kName + kControl >= Datagram::kHeadroom);

inline constexpr size_t kMaxAtOnce = 64;    // completions of one poll
inline constexpr unsigned kMaxErrors = 64;  // bounds retries of a permanent error
inline constexpr int kMaxPassesAtStop = 8;  // polls before reception ends; bounds a flood

// Whether reception can go on after an error: buffers had run out and are back by now; the kernel
// was short of memory for a moment; or the network reported an earlier datagram, once (ip(7)).
inline bool passes(int code) {
  constexpr int kPassing[] = {ENOBUFS,      EINTR,       EAGAIN,     ENOMEM,   ECONNREFUSED,
                              EHOSTUNREACH, ENETUNREACH, EHOSTDOWN,  ENETDOWN, EMSGSIZE,
                              ENOPROTOOPT,  EPROTO,      EOPNOTSUPP, ENONET,   ECONNRESET};
  return std::find(std::begin(kPassing), std::end(kPassing), code) != std::end(kPassing);
}

// The adopted owners.
class IoOwners {
 public:
  void adopt(std::unique_ptr<IoOwner> owner) { owners_.push_back(std::move(owner)); }
  void release(IoOwner& owner) {
    auto it = std::find_if(owners_.begin(), owners_.end(),
                           [&](const auto& one) { return one.get() == &owner; });
    if (it != owners_.end()) released_.splice(released_.end(), owners_, it);
  }
  // Outside of all listeners: destroys the released ones.
  void drop_released() { released_.clear(); }

 private:
  std::list<std::unique_ptr<IoOwner>> owners_, released_;
};

}  // namespace rocefs
