#include "pcc/card/order_queue.h"

#include <cerrno>
#include <utility>

namespace rocefs {

OrderQueue::Turn::~Turn() {
  done(Error{EIO, "whoever did it has gone"});
}

void OrderQueue::Turn::done(Result<void> result) {
  if (OrderQueue* queue = std::exchange(queue_, nullptr)) queue->finish(std::move(result));
}

OrderQueue::~OrderQueue() {
  if (turn_) turn_->queue_ = nullptr;
}

void OrderQueue::add(Act act, Answer<void> answer) {
  orders_.push_back({std::move(act), std::move(answer)});
  next();
}

void OrderQueue::next() {
  if (turn_ || orders_.empty()) return;
  auto turn = std::make_shared<Turn>(*this);
  turn_ = turn.get();
  Act act = std::move(orders_.front().act);
  act(std::move(turn));
}

// The answer may add another order.
void OrderQueue::finish(Result<void> result) {
  turn_ = nullptr;
  Answer<void> answer = std::move(orders_.front().answer);
  orders_.pop_front();
  answer(std::move(result));
  next();
}

void OrderQueue::abandon(const Error& why) {
  if (Turn* turn = std::exchange(turn_, nullptr)) turn->queue_ = nullptr;
  for (Order& order : std::exchange(orders_, {})) order.answer(why);
}

}  // namespace rocefs
