// PendingRequest: one read or write on its way from the kernel to a file and back. It is answered
// exactly once, whoever comes first: the file, an interrupt, or the last holder letting go.
#pragma once

#include <fuse_lowlevel.h>

#include <cerrno>
#include <memory>
#include <set>
#include <utility>

#include "core/file.h"

namespace rocefs {

class PendingRequest;

// The requests that wait. When the session goes, what is left may not touch it any more.
class PendingRequests {
 public:
  ~PendingRequests();
  void add(PendingRequest* request) { all_.insert(request); }
  void remove(PendingRequest* request) { all_.erase(request); }

 private:
  std::set<PendingRequest*> all_;
};

class PendingRequest : public std::enable_shared_from_this<PendingRequest> {
 public:
  PendingRequest(fuse_req_t request, PendingRequests& owner)
      : request_(request),
        owner_(&owner),
        operation_(std::make_shared<Operation>(caller_of(request))) {
    owner_->add(this);
  }
  ~PendingRequest() {
    fail(EIO);
    if (owner_) owner_->remove(this);
  }
  PendingRequest(const PendingRequest&) = delete;
  PendingRequest& operator=(const PendingRequest&) = delete;

  static Caller caller_of(fuse_req_t request) {
    const fuse_ctx* context = fuse_req_ctx(request);
    return {context->uid, context->gid, context->pid};
  }
  const OperationPtr& operation() const { return operation_; }

  // Takes the right to answer; null if it is taken already.
  fuse_req_t take() {
    fuse_req_t request = std::exchange(request_, nullptr);
    if (request && interruptible_) fuse_req_interrupt_func(request, nullptr, nullptr);
    return request;
  }
  void fail(int code) {
    if (fuse_req_t request = take()) fuse_reply_err(request, code);
  }
  // The file has seen the request and keeps its answer back: from now on it may be interrupted.
  void wait() {
    if (!request_ || !operation_->interruptible()) return;
    interruptible_ = true;
    fuse_req_interrupt_func(request_, &PendingRequest::interrupted, this);
  }
  void abandon() {
    request_ = nullptr;
    owner_ = nullptr;
  }

 private:
  static void interrupted(fuse_req_t, void* self) {
    // The answer may drop the last reference.
    auto request = static_cast<PendingRequest*>(self)->shared_from_this();
    request->interruptible_ = false;  // libfuse holds its lock: the handler may not be changed here
    request->operation_->interrupt();
    request->fail(EINTR);
  }

  fuse_req_t request_;
  PendingRequests* owner_;
  OperationPtr operation_;
  bool interruptible_ = false;
};

inline PendingRequests::~PendingRequests() {
  for (PendingRequest* request : all_) request->abandon();
}

}  // namespace rocefs
