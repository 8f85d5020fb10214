// SendRoom: whether a socket's buffer has room for one more datagram. The kernel would say so by
// EAGAIN, one datagram at a time, and those behind it might find room by then: they would overtake
// it. Here an upper bound is kept of what the kernel counts, and the kernel is asked only when that
// is reached.
#pragma once

#include <cstddef>

namespace rocefs {

class SendRoom {
 public:
  // If so, it counts as sent. `settle` is called before the kernel is asked: what is being sent
  // from the socket must be with the kernel when it returns.
  template <class Settle>
  bool take(int fd, size_t octets, const Settle& settle) {
    if (held_ >= limit_) {
      if (limit_ > 0) settle();
      ask(fd);
      if (held_ >= limit_) return false;
    }
    add(octets);
    return true;
  }
  // Joins one that has room.
  void add(size_t octets) { held_ += 2 * octets + kOverhead; }

 private:
  // An skb with its data and its shared info: kmalloc gives up to twice what is asked for.
  static constexpr size_t kOverhead = 2048;

  void ask(int fd);

  size_t limit_ = 0;  // octets, as the kernel counts; 0: it was not asked yet
  size_t held_ = 0;
};

}  // namespace rocefs
