// Session: one netlink socket that we answer. Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include "core/base/fd.h"
#include "core/base/shares.h"

namespace rocefs {

class Session {
 public:
  // `far`: our end of the pair, `share`: of our descriptors; `number`: of the other end in sockfs;
  // `port`: netlink port.
  Session(Fd far, Shares::Share share, uint64_t number, uint32_t port)
      : share_(std::move(share)), far_(std::move(far)), number_(number), port_(port) {}

  int far() const { return far_.get(); }
  uint64_t number() const { return number_; }
  uint32_t port() const;
  void set_port(uint32_t port);

  // Sends an answer, or keeps it until the socket has room. `share`: of the octets that wait.
  void deliver(std::string message, Shares::Share share);
  // Sends what waits. False if the asker has closed its end.
  bool flush();
  bool waits() const;

 private:
  struct Answer {
    std::string message;
    Shares::Share share;
  };
  bool flush_locked();

  const Shares::Share share_;
  const Fd far_;
  const uint64_t number_;
  mutable std::mutex mutex_;
  uint32_t port_;
  std::deque<Answer> waiting_;
};

}  // namespace rocefs
