// ReceiveQueue: receive requests that wait for messages: of one queue pair, or shared by several.
#pragma once

#include <cerrno>
#include <functional>

#include "core/result.h"
#include "rdma/verbs.h"
#include "rdma/work_queue.h"

namespace rocefs {

class ReceiveQueue {
 public:
  explicit ReceiveQueue(size_t depth) : queue_(depth) {}

  // ENOMEM when it is full.
  Result<void> post(const ReceiveRequest& request) {
    if (queue_.full()) return Error{ENOMEM, "the receive queue is full"};
    queue_.push(request);
    return {};
  }
  bool empty() const { return queue_.empty(); }
  size_t size() const { return queue_.size(); }
  ReceiveRequest take() {
    ReceiveRequest request = queue_.front();
    queue_.pop();
    if (limit_ > 0 && queue_.size() < limit_) {
      limit_ = 0;
      if (limit_reached_) limit_reached_();
    }
    return request;
  }

  // Calls `reached` once when fewer than `limit` are left; 0 asks for nothing. It may only take
  // note.
  void set_limit(size_t limit, std::function<void()> reached) {
    limit_ = limit;
    limit_reached_ = std::move(reached);
  }

 private:
  WorkQueue<ReceiveRequest> queue_;
  size_t limit_ = 0;
  std::function<void()> limit_reached_;
};

}  // namespace rocefs
