// CompletionQueue: completions of ended work requests, in the order in which these ended.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "rdma/packet/verbs.h"

namespace rocefs {

// Destination of completions.
class CompletionSink {
 public:
  // Returns the next completion, blank, for the caller to fill; null when the queue is full: the
  // completion is lost and the QP that made it must fail. No other call may come before publish().
  [[nodiscard]] virtual Completion* claim() = 0;
  // `solicited`: the far end asked for an event.
  virtual void publish(bool solicited = false) = 0;

  [[nodiscard]] bool push(const Completion& completion, bool solicited = false) {
    Completion* slot = claim();
    if (!slot) return false;
    *slot = completion;
    publish(solicited);
    return true;
  }

 protected:
  ~CompletionSink() = default;
};

// A queue in the daemon's memory.
class CompletionQueue final : public CompletionSink {
 public:
  explicit CompletionQueue(size_t depth) : depth_(depth), ring_(depth) {}

  [[nodiscard]] Completion* claim() override {
    if (count_ == depth_) return nullptr;
    Completion& slot = ring_[wrapped(head_ + count_)];
    slot = {};
    return &slot;
  }
  void publish(bool solicited) override {
    const Completion& completion = ring_[wrapped(head_ + count_++)];
    if (listener_) listener_();
    bool counts =
        armed_ == Armed::kNext ||
        (armed_ == Armed::kSolicited && (solicited || completion.status != WcStatus::kSuccess));
    if (counts) {
      armed_ = Armed::kNo;
      if (event_) event_();
    }
  }

  // Takes at most out.size() completions; returns how many.
  size_t poll(std::span<Completion> out) {
    size_t taken = 0;
    while (taken < out.size() && count_ > 0) {
      out[taken++] = ring_[head_];
      head_ = wrapped(head_ + 1);
      --count_;
    }
    return taken;
  }

  // Asks for one event at the next completion, or at the next one that is solicited or an error.
  // Completions already queued raise none. A request for any completion overrides one for solicited
  // completions.
  void request_event(bool solicited_only) {
    if (armed_ != Armed::kNext) armed_ = solicited_only ? Armed::kSolicited : Armed::kNext;
  }

  // Callbacks, which run in the middle of a packet's processing and may only take note: the
  // listener at each completion, the handler at each event that was asked for.
  void set_listener(std::function<void()> listener) { listener_ = std::move(listener); }
  void set_event_handler(std::function<void()> handler) { event_ = std::move(handler); }

 private:
  enum class Armed { kNo, kSolicited, kNext };

  // Wraps a slot number below twice the depth.
  size_t wrapped(size_t slot) const { return slot < depth_ ? slot : slot - depth_; }

  size_t depth_;
  std::vector<Completion> ring_;
  size_t head_ = 0;
  size_t count_ = 0;
  Armed armed_ = Armed::kNo;
  std::function<void()> listener_;
  std::function<void()> event_;
};

}  // namespace rocefs
