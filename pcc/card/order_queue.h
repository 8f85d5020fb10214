// OrderQueue: orders that take a while, one after the other, in the order in which they were given.
#pragma once

#include <deque>
#include <memory>

#include "core/tree/file.h"

namespace rocefs {

// Control thread.
class OrderQueue {
 public:
  class Turn;
  using TurnPtr = std::shared_ptr<Turn>;
  using Act = UniqueFunction<void(TurnPtr turn)>;

  OrderQueue() = default;
  ~OrderQueue();
  OrderQueue(const OrderQueue&) = delete;
  OrderQueue& operator=(const OrderQueue&) = delete;

  // `act` runs when all before it are done, perhaps at once. `answer` is what it says of its turn.
  void add(Act act, Answer<void> answer);
  // All that were given are answered with `why`; what comes of the one under way is nobody's.
  void abandon(const Error& why);

 private:
  struct Order {
    Act act;
    Answer<void> answer;
  };

  void next();
  void finish(Result<void> result);

  std::deque<Order> orders_;
  Turn* turn_ = nullptr;  // of the first
};

// An order's time. It ends with done(), or with the last who knows of it: EIO.
class OrderQueue::Turn {
 public:
  explicit Turn(OrderQueue& queue) : queue_(&queue) {}
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // The order was abandoned, or is done.
  bool over() const { return !queue_; }
  // Nothing when it is over.
  void done(Result<void> result);

 private:
  friend class OrderQueue;
  OrderQueue* queue_;
};

}  // namespace rocefs
