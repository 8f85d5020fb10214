// ReceiveQueue: the posted receive requests of one queue pair, or of an SRQ.
#pragma once

#include <cerrno>
#include <cstdint>
#include <functional>

#include "core/base/result.h"
#include "rdma/packet/verbs.h"
#include "rdma/packet/work_queue.h"

namespace rocefs {

class ReceiveQueue {
 public:
  // `pd`: protection domain that the requests' memory must be of; of an SRQ it may be another one
  // than the queue pairs'.
  ReceiveQueue(size_t depth, uint32_t pd) : queue_(depth), pd_(pd) {}

  // ENOMEM when the queue is full.
  Result<void> post(const ReceiveRequest& request) {
    if (queue_.full()) return Error{ENOMEM, "the receive queue is full"};
    queue_.push(request);
    return {};
  }
  bool full() const { return queue_.full(); }
  bool empty() {
    if (queue_.empty() && source_) source_();
    return queue_.empty();
  }
  size_t size() const { return queue_.size(); }
  uint32_t pd() const { return pd_; }
  ReceiveRequest take() {
    if (limit_ > 0 && source_) source_();
    ReceiveRequest request = queue_.front();
    queue_.pop();
    if (limit_ > 0 && queue_.size() < limit_) {
      limit_ = 0;
      if (limit_reached_) limit_reached_();
    }
    return request;
  }

  // Calls `reached` once when fewer than `limit` requests are left; a limit of 0 ends that.
  // `reached` may only take note.
  void set_limit(size_t limit, std::function<void()> reached) {
    limit_ = limit;
    limit_reached_ = std::move(reached);
  }

  // Sets a source, which posts requests that are kept elsewhere. It is called before the queue is
  // found empty, or close to its limit.
  void set_source(std::function<void()> source) { source_ = std::move(source); }

 private:
  WorkQueue<ReceiveRequest> queue_;
  const uint32_t pd_;
  size_t limit_ = 0;
  std::function<void()> limit_reached_;
  std::function<void()> source_;
};

}  // namespace rocefs
