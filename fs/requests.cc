#include "fs/requests.h"

#include <algorithm>
#include <cerrno>

#include "fs/heard_signal.h"

namespace rocefs {
namespace {

constexpr TimeNs kLook = 20 * kMillisecond;  // a ^C that comes late by so much is not felt
constexpr size_t kLooksInTurn = 32;          // some microseconds each

}  // namespace

Requests::Ticket::~Ticket() {
  if (pending_) drop(std::move(pending_));
}

fuse_req_t Requests::Ticket::take() {
  std::shared_ptr<Pending> pending = std::move(pending_);
  return pending ? Requests::take(*pending) : nullptr;
}

fuse_req_t Requests::Ticket::take_stored() {
  if (pending_ && pending_->request && pending_->owner->stored_) {
    pending_->owner->stored_(pending_->path);
  }
  return take();
}

void Requests::Ticket::fail(const Error& why) {
  if (std::shared_ptr<Pending> pending = std::move(pending_)) Requests::fail(*pending, why);
}

Caller Requests::caller_of(fuse_req_t request) {
  const fuse_ctx* context = fuse_req_ctx(request);
  return {context->uid, context->gid, context->pid};
}

// Takes the request for an answer. The caller keeps `pending` alive.
fuse_req_t Requests::take(Pending& pending) {
  fuse_req_t request = std::exchange(pending.request, nullptr);
  if (request) pending.owner->waiting_.erase(pending.key);
  return request;
}

// Reports first: the reason must be readable when the writer sees the errno.
void Requests::fail(Pending& pending, const Error& why) {
  fuse_req_t request = take(pending);
  if (!request) return;
  const Refused& refused = pending.owner->refused_;
  if (!pending.path.empty() && refused) refused(pending.path, pending.caller(), why);
  fuse_reply_err(request, why.code);
}

void Requests::drop(std::shared_ptr<Pending> pending) {
  std::shared_ptr<Requests> owner = pending->owner;
  std::lock_guard lock(owner->gate_);
  if (!owner->loop_) return;
  owner->loop_->post([pending = std::move(pending)] {
    fail(*pending, Error{EIO, "dropped without an answer"});
  });
}

void Requests::interrupt(uint64_t key) {
  auto it = waiting_.find(key);
  if (it == waiting_.end() || !it->second->interruptible()) return;
  if (heard_.empty()) post_hearing();
  heard_.push_back(it->second);
}

void Requests::post_hearing() {
  loop_->post([self = weak_from_this()] {
    if (auto requests = self.lock()) requests->hear();
  });
}

void Requests::hear() {
  for (size_t looks = 0; looks < kLooksInTurn && !heard_.empty(); ++looks) {
    std::shared_ptr<Pending> pending = heard_.front().lock();
    heard_.pop_front();
    if (!pending || !pending->request || !pending->interruptible()) continue;
    bool news = heard_signal(pending->caller()) == HeardSignal::kNews;
    if (!news || !watch(pending)) give_up(*pending);
  }
  if (!heard_.empty()) post_hearing();
}

void Requests::give_up(Pending& pending) {
  pending.interrupt();
  if (fuse_req_t request = take(pending)) fuse_reply_err(request, EINTR);  // else it has answered
}

// Returns false if the user has many watched requests.
bool Requests::watch(const std::shared_ptr<Pending>& pending) {
  uid_t user = pending->caller().uid;
  pending->watched = watched_.take(user, is_privileged(user));
  if (!pending->watched) return false;
  if (signalled_.empty()) look_->arm(kLook);
  signalled_.push_back(pending);
  return true;
}

void Requests::look_again() {
  size_t looks = std::min(signalled_.size(), kLooksInTurn);
  for (size_t i = 0; i < looks; ++i) {
    std::shared_ptr<Pending> pending = signalled_.front().lock();
    signalled_.pop_front();
    if (!pending || !pending->request) continue;
    bool stop = pending->interruptible() && heard_signal(pending->caller()) == HeardSignal::kStop;
    if (stop) {
      give_up(*pending);
    } else {
      signalled_.push_back(pending);
    }
  }
  if (!signalled_.empty()) look_->arm(kLook);
}

void Requests::close() {
  {
    std::lock_guard lock(gate_);
    loop_ = nullptr;
  }
  refused_ = nullptr;
  stored_ = nullptr;
  look_.reset();
  heard_.clear();
  for (auto& [key, pending] : std::exchange(waiting_, {})) {
    fuse_reply_err(std::exchange(pending->request, nullptr), EIO);
  }
}

}  // namespace rocefs
