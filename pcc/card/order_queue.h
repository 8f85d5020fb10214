// OrderQueue: asynchronous orders, executed one at a time in the order of add().
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

  // Queues an order. `act` runs when all earlier orders are done, perhaps at once; `answer` gets
  // the result of its turn.
  void add(Act act, Answer<void> answer);
  // Answers all pending orders with `why`; a late result of the current one is dropped.
  void abandon(const Error& why);

 private:
  struct Order {
    Act act;
    Answer<void> answer;
  };

  void next();
  void finish(Result<void> result);

  std::deque<Order> orders_;
  Turn* turn_ = nullptr;  // turn of the first order
};

// Turn of one order. Ends with done(); without it the last reference ends it with EIO.
class OrderQueue::Turn {
 public:
  explicit Turn(OrderQueue& queue) : queue_(&queue) {}
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // True after done() or abandon().
  bool over() const { return !queue_; }
  // No-op if over.
  void done(Result<void> result);

 private:
  friend class OrderQueue;
  OrderQueue* queue_;
};

}  // namespace rocefs
