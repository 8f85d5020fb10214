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
  if (request) pending.owner->waiting_.erase(request);
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

// Waits for interrupts. Only the control thread reads from the kernel, so none comes in between.
// libfuse calls back at once if one has come already, but without a reference to the request, which
// the answer frees: handled here.
void Requests::wait(const std::shared_ptr<Pending>& pending) {
  fuse_req_t request = pending->request;
  waiting_.emplace(request, pending);
  if (fuse_req_interrupted(request)) return interrupt(request);
  fuse_req_interrupt_func(
      request,
      [](fuse_req_t interrupted, void* self) noexcept {
        try {
          static_cast<Requests*>(self)->interrupt(interrupted);
        } catch (...) {  // kept until it is answered
        }
      },
      this);
}

void Requests::interrupt(fuse_req_t request) {
  auto it = waiting_.find(request);
  if (it == waiting_.end() || !it->second->interruptible()) return;
  std::shared_ptr<Pending> pending = it->second;
  bool news = heard_signal(pending->caller()) == HeardSignal::kNews;
  if (!news || !watch(pending)) give_up(*pending);
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
  for (auto& [request, pending] : std::exchange(waiting_, {})) {
    pending->request = nullptr;
    fuse_reply_err(request, EIO);
  }
}

}  // namespace rocefs
