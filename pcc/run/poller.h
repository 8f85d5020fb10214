// PccPoller: the queue pairs that one poller has, and when each is called next. Sans-IO.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "pcc/run/agenda.h"
#include "pcc/run/call.h"
#include "pcc/run/queue_pair.h"
#include "pcc/run/run.h"

namespace rocefs {

class PccPoller {
 public:
  // Queue pairs whose line's number leaves `index` when it is divided by the number of pollers.
  PccPoller(PccRun& run, unsigned index);

  // See PccController::poll().
  TimeNs poll(TimeNs now);

  // Held by poll(), and by whoever calls these.
  std::mutex& lock() { return lock_; }
  // Finds the queue pairs that are active now, and forgets those that are not.
  void scan();
  // Null when that one is not active. It must be one of this poller's lines.
  PccQp* find(uint32_t line) { return qps_[line / run_.pollers].get(); }
  // In order of their numbers.
  template <class Function>
  void for_each(Function function) {
    for (auto& qp : qps_) {
      if (qp) function(*qp);
    }
  }
  void apply(PccQp& qp, unsigned slot);
  // The interval was `old`.
  void change_interval(TimeNs old);

  // Any thread, at any time.
  struct Current {
    uint64_t number;
    uint32_t qpn;
    unsigned slot;
  };
  Current current() const;
  uint64_t calls() const { return calls_.get(); }
  const PccReads& reads() const { return reads_; }

 private:
  void schedule(PccQp& qp);
  void schedule_all();
  void start_fresh(TimeNs now);
  void drop_stale();
  bool is_stale(const PccAgenda::Entry& entry);
  void step(PccQp& qp, TimeNs now);
  void call(PccQp& qp, TimeNs now, bool due);

  PccRun& run_;
  const unsigned index_;
  std::mutex lock_;
  uint32_t changes_seen_ = 0;
  TimeNs last_now_ = 0;
  std::vector<std::unique_ptr<PccQp>> qps_;  // by line / pollers
  std::vector<uint32_t> fresh_;              // lines that were seen since the last poll()
  PccAgenda agenda_;  // an entry is stale where the queue pair's `next` is another
  PccReads reads_;
  Counter calls_;
  // The call under way. Stored before the number is.
  std::atomic<uint64_t> number_{0};
  std::atomic<uint32_t> qpn_{0};
  std::atomic<unsigned> slot_{0};
};

}  // namespace rocefs
