// Requests: the reads and writes on their way from the kernel to a file and back. Each is answered
// exactly once, whoever comes first: the file, an interrupt, the answer being dropped, or the end
// of the session.
#pragma once

#include <fuse_lowlevel.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/file.h"
#include "core/poll_loop.h"

namespace rocefs {

// Control thread, but where said. Tickets may outlive the session; what they find then is that
// their request has been answered.
class Requests : public std::enable_shared_from_this<Requests> {
 public:
  using Refused = std::function<void(const std::string& path, const Error& why)>;

  // The right to answer one request. Letting go of it unused, on any thread, answers EIO.
  class Ticket {
   public:
    Ticket(Ticket&&) noexcept = default;
    Ticket& operator=(Ticket&&) = delete;
    ~Ticket();
    // The request, for the caller to answer; null if it has been answered.
    fuse_req_t take();
    void fail(const Error& why);

   private:
    friend class Requests;
    Ticket(std::shared_ptr<Requests> requests, fuse_req_t request, uint64_t id)
        : requests_(std::move(requests)), request_(request), id_(id) {}
    std::shared_ptr<Requests> requests_;  // null when moved from or used
    fuse_req_t request_;
    uint64_t id_;
  };

  Requests(PollLoop& loop, Refused refused) : loop_(&loop), refused_(std::move(refused)) {}

  static Caller caller_of(fuse_req_t request);

  // Lets `hand_over(operation, ticket)` give the request to its file, and sees to interrupts while
  // the answer is owed. A refusal is reported under `path`, unless that is empty.
  template <class HandOver>
  void run(fuse_req_t request, std::string path, HandOver hand_over) {
    auto operation = std::make_shared<Operation>(caller_of(request));
    uint64_t id = ++last_id_;
    waiting_.insert_or_assign(request, Waiting{id, operation, std::move(path)});
    try {
      hand_over(operation, Ticket(shared_from_this(), request, id));
    } catch (...) {  // libfuse is C
      fail(request, id, Error{ENOMEM, "out of memory"});
    }
    watch_interrupt(request, id);
  }

  // Answers EIO to whoever waits. Later answers are dropped.
  void close();

 private:
  struct Waiting {
    uint64_t id;
    OperationPtr operation;
    std::string path;
  };

  Waiting* find(fuse_req_t request, uint64_t id);
  void fail(fuse_req_t request, uint64_t id, const Error& why);
  void drop(fuse_req_t request, uint64_t id);
  void watch_interrupt(fuse_req_t request, uint64_t id);
  void interrupt(fuse_req_t request);

  std::mutex gate_;  // guards loop_
  PollLoop* loop_;   // null once closed
  Refused refused_;
  uint64_t last_id_ = 0;
  // A request's address may be used again once it is answered: the id tells the two apart.
  std::unordered_map<fuse_req_t, Waiting> waiting_;
};

}  // namespace rocefs
