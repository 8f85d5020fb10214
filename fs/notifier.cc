#include "fs/notifier.h"

#include <linux/fuse.h>
#include <sys/socket.h>

#include <cerrno>
#include <string_view>

namespace rocefs {
namespace {

constexpr size_t kUnderWay = 32;  // well below what a socket holds: the rest waits here

template <class Body>
void append(std::string& text, int32_t code, const Body& body, std::string_view name = {}) {
  size_t tail = name.empty() ? 0 : name.size() + 1;
  fuse_out_header header{static_cast<uint32_t>(sizeof header + sizeof body + tail), code, 0};
  text.append(reinterpret_cast<const char*>(&header), sizeof header);
  text.append(reinterpret_cast<const char*>(&body), sizeof body);
  if (tail != 0) text.append(name).push_back('\0');
}

}  // namespace

Notifier::Notifier(PollLoop& loop, Invalidator invalidator, Stalled stalled, TimeNs patience)
    : loop_(loop),
      invalidator_(std::move(invalidator)),
      stalled_(std::move(stalled)),
      patience_(patience),
      stall_(std::in_place, loop, [this] { lose_patience(); }) {}

Notifier::~Notifier() {
  close();
}

void Notifier::connect(int connection) {
  connection_ = connection;
  if (!begin()) give_up();
}

bool Notifier::begin() {
  if (!invalidator_ || !invalidator_.use(connection_)) return false;
  loop_.watch(invalidator_.socket(), [this] { hear(); });
  return true;
}

// Invalidates the entry and the directory's attributes, because its number of subdirectories
// changes.
void Notifier::entry_changed(Ino parent, const std::string& name) {
  if (connection_ < 0 || closing_) return;
  Order order{parent, {}};
  append(order.notifications, FUSE_NOTIFY_INVAL_ENTRY,
         fuse_notify_inval_entry_out{parent, static_cast<uint32_t>(name.size()), 0}, name);
  append(order.notifications, FUSE_NOTIFY_INVAL_INODE, fuse_notify_inval_inode_out{parent, -1, 0});
  orders_.push_back(std::move(order));
  if (orders_.size() == 1) stall_->arm(patience_);
  flush();
}

void Notifier::when_known(Task then) {
  if (closing_) return then();
  if (orders_.empty() || told_) return loop_.post(std::move(then));
  orders_.back().then.push_back(std::move(then));
}

void Notifier::flush() {
  while (!closing_ && sent_ < orders_.size() && sent_ < kUnderWay) {
    if (!invalidator_.send(orders_[sent_].notifications)) return;
    ++sent_;
  }
}

void Notifier::hear() {
  char taken;
  ssize_t got;
  while ((got = ::recv(invalidator_.socket(), &taken, 1, MSG_DONTWAIT)) > 0) take_oldest();
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return flush();
  loop_.unwatch(invalidator_.socket());
  start_again();
}

void Notifier::take_oldest() {
  taken_ = true;
  if (sent_ > 0) --sent_;
  std::deque<Task> then = std::move(orders_.front().then);
  orders_.pop_front();
  told_ = false;
  if (stall_ && orders_.empty()) stall_->disarm();
  if (stall_ && !orders_.empty()) stall_->arm(patience_);
  run(std::move(then));
}

void Notifier::run(std::deque<Task> then) {
  for (Task& task : then) loop_.post(std::move(task));
}

void Notifier::lose_patience() {
  told_ = true;
  stalled_(orders_.front().directory);
  for (Order& order : orders_) run(std::exchange(order.then, {}));
}

// Restarts the process after it died by itself. Unconfirmed messages are sent again to the next
// one. If that fails too, caches expire by their time-outs.
void Notifier::start_again() {
  sent_ = 0;
  invalidator_ = Invalidator();
  if (closing_) return;
  if (std::exchange(taken_, false)) {
    if (Result<Invalidator> started = Invalidator::start()) invalidator_ = std::move(*started);
  }
  if (!begin()) return give_up();
  flush();
}

void Notifier::give_up() {
  connection_ = -1;
  while (!orders_.empty()) take_oldest();
}

void Notifier::begin_close() {
  closing_ = true;
  for (Order& order : orders_) order.then.clear();
}

void Notifier::close() {
  if (std::exchange(closed_, true)) return;
  begin_close();
  stall_.reset();
  if (connection_ >= 0 && invalidator_) loop_.unwatch(invalidator_.socket());
  invalidator_ = Invalidator();
}

}  // namespace rocefs
