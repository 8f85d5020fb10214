// Requests: reads and writes between the kernel and a file. Each is answered exactly once, by
// whichever comes first: the file, an interrupt, the drop of the answer, or the end of the session.
#pragma once

#include <fuse_lowlevel.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/base/shares.h"
#include "core/loop/loop_timer.h"
#include "core/loop/poll_loop.h"
#include "core/tree/file.h"

namespace rocefs {

// Control thread, unless stated otherwise. Tickets may outlive the session; their requests have
// been answered then.
class Requests : public std::enable_shared_from_this<Requests> {
  struct Pending;

 public:
  using Refused =
      std::function<void(const std::string& path, const Caller& caller, const Error& why)>;

  // Ticket: the right to answer one request. Dropping it unused, on any thread, answers EIO.
  class Ticket {
   public:
    Ticket(Ticket&&) noexcept = default;
    Ticket& operator=(Ticket&&) = delete;
    ~Ticket();
    // Returns the request, for the caller to answer; null if it has been answered.
    fuse_req_t take();
    // Answers a write that was accepted, after reporting it.
    fuse_req_t take_stored();
    void fail(const Error& why);

   private:
    friend class Requests;
    explicit Ticket(std::shared_ptr<Pending> pending) : pending_(std::move(pending)) {}
    std::shared_ptr<Pending> pending_;  // null when moved from or used
  };

  using Stored = std::function<void(const std::string& path)>;
  Requests(PollLoop& loop, Refused refused, Stored stored)
      : loop_(&loop),
        refused_(std::move(refused)),
        stored_(std::move(stored)),
        watched_(kMaxWatched, kWatchedForPrivileged),
        look_(std::in_place, loop, [this] { look_again(); }) {}

  static Caller caller_of(fuse_req_t request);

  // Lets `hand_over(operation, ticket)` pass the request to its file, and handles interrupts until
  // it is answered. `key` is its number (key_of()), `opener` who opened the file. Reports a refusal
  // under `path`, unless that is empty.
  template <class HandOver>
  void run(fuse_req_t request, uint64_t key, std::string path, std::shared_ptr<const Opener> opener,
           HandOver hand_over) {
    auto pending = std::make_shared<Pending>(shared_from_this(), request, key, std::move(path));
    pending->set_opener(std::move(opener));
    try {
      hand_over(pending, Ticket(pending));
      if (pending->request) waiting_.emplace(key, pending);
    } catch (...) {  // libfuse is C
      fail(*pending, Error{ENOMEM, "out of memory"});
    }
  }

  // The caller of a request has a signal. Only the control thread reads from the kernel, which
  // tells of a signal after the request: if it does not wait, it has been answered.
  void interrupt(uint64_t key);
  // Answers EIO to all waiting requests. Later answers are dropped.
  void close();

 private:
  // Request state shared by its file, its ticket and, until the answer, by Requests. Nearly all
  // requests are answered at once and cost no more than this.
  struct Pending final : Operation {
    Pending(std::shared_ptr<Requests> o, fuse_req_t r, uint64_t k, std::string p)
        : Operation(caller_of(r)), owner(std::move(o)), request(r), key(k), path(std::move(p)) {}
    const std::shared_ptr<Requests> owner;
    fuse_req_t request;  // null once it is answered
    const uint64_t key;
    std::string path;
    Shares::Share watched;  // share of the requests that are signalled
  };
  static constexpr size_t kMaxWatched = 1024, kWatchedForPrivileged = 128;

  static fuse_req_t take(Pending& pending);
  static void fail(Pending& pending, const Error& why);
  static void drop(std::shared_ptr<Pending> pending);
  void post_hearing();
  void hear();
  static void give_up(Pending& pending);
  bool watch(const std::shared_ptr<Pending>& pending);
  void look_again();

  std::mutex gate_;  // guards loop_
  PollLoop* loop_;   // null once closed
  Refused refused_;
  Stored stored_;
  std::unordered_map<uint64_t, std::shared_ptr<Pending>> waiting_;  // by key
  // Requests whose caller has a signal that is not known yet. A process with many threads in
  // read(2) has one for each when it is killed.
  std::deque<std::weak_ptr<Pending>> heard_;
  // Requests whose caller had a signal that did not stop them. The kernel reports no further
  // signal.
  Shares watched_;
  std::deque<std::weak_ptr<Pending>> signalled_;
  std::optional<LoopTimer> look_;  // at these; none once closed
};

}  // namespace rocefs
