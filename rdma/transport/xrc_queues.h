// XrcQueues: the shared receive queues of a NIC that packets name by a number (XRC, IBTA A14).
#pragma once

#include <cstdint>
#include <unordered_map>

#include "rdma/transport/completion_queue.h"
#include "rdma/transport/receive_queue.h"

namespace rocefs {

// Core thread.
class XrcQueues {
 public:
  struct Entry {
    ReceiveQueue* receives;
    CompletionSink* cq;   // of all its receives
    uint32_t domain = 0;  // number of the XRC domain; its queue pairs alone may use the queue
  };

  // Returns the queue's number, 24 bits, which is not used again soon.
  uint32_t add(const Entry& entry) {
    do {
      last_ = last_ == kLastNumber ? 1 : last_ + 1;
    } while (entries_.contains(last_));
    entries_.emplace(last_, entry);
    return last_;
  }
  void remove(uint32_t number) { entries_.erase(number); }
  // Null if there is none. Valid until the next add().
  const Entry* find(uint32_t number) const {
    auto found = entries_.find(number);
    return found == entries_.end() ? nullptr : &found->second;
  }

 private:
  static constexpr uint32_t kLastNumber = 0xffffff;

  std::unordered_map<uint32_t, Entry> entries_;
  uint32_t last_ = 0;
};

}  // namespace rocefs
