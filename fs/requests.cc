#include "fs/requests.h"

#include <cerrno>

namespace rocefs {

Requests::Ticket::~Ticket() {
  if (requests_) requests_->drop(request_, id_);
}

fuse_req_t Requests::Ticket::take() {
  std::shared_ptr<Requests> requests = std::move(requests_);
  if (!requests || !requests->find(request_, id_)) return nullptr;
  requests->waiting_.erase(request_);
  return request_;
}

void Requests::Ticket::fail(const Error& why) {
  if (std::shared_ptr<Requests> requests = std::move(requests_)) {
    requests->fail(request_, id_, why);
  }
}

Caller Requests::caller_of(fuse_req_t request) {
  const fuse_ctx* context = fuse_req_ctx(request);
  return {context->uid, context->gid, context->pid};
}

Requests::Waiting* Requests::find(fuse_req_t request, uint64_t id) {
  auto it = waiting_.find(request);
  return it != waiting_.end() && it->second.id == id ? &it->second : nullptr;
}

// The reason is reported first: it is there to be read when the writer sees the errno.
void Requests::fail(fuse_req_t request, uint64_t id, const Error& why) {
  Waiting* waiting = find(request, id);
  if (!waiting) return;
  std::string path = std::move(waiting->path);
  waiting_.erase(request);
  if (!path.empty() && refused_) refused_(path, why);
  fuse_reply_err(request, why.code);
}

void Requests::drop(fuse_req_t request, uint64_t id) {
  std::lock_guard lock(gate_);
  if (!loop_) return;
  loop_->post([self = shared_from_this(), request, id] {
    self->fail(request, id, Error{EIO, "given up without an answer"});
  });
}

// Only the control thread reads from the kernel, so no interrupt can come in between. libfuse
// calls back at once if one has come already, but without a hold on the request, which the answer
// frees: that case is ours.
void Requests::watch_interrupt(fuse_req_t request, uint64_t id) {
  if (!find(request, id)) return;
  if (fuse_req_interrupted(request)) return interrupt(request);
  fuse_req_interrupt_func(
      request,
      [](fuse_req_t interrupted, void* self) noexcept {
        try {
          static_cast<Requests*>(self)->interrupt(interrupted);
        } catch (...) {  // it stays until it is answered
        }
      },
      this);
}

void Requests::interrupt(fuse_req_t request) {
  auto it = waiting_.find(request);
  if (it == waiting_.end() || !it->second.operation->interruptible()) return;
  uint64_t id = it->second.id;
  OperationPtr operation = it->second.operation;
  operation->interrupt();
  if (!find(request, id)) return;  // it answered
  waiting_.erase(request);
  fuse_reply_err(request, EINTR);
}

void Requests::close() {
  {
    std::lock_guard lock(gate_);
    loop_ = nullptr;
  }
  refused_ = nullptr;
  for (auto& [request, waiting] : std::exchange(waiting_, {})) fuse_reply_err(request, EIO);
}

}  // namespace rocefs
