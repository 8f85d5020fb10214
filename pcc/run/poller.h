// PccPoller: the queue pairs of one poller, and when each is called next. Sans-IO.
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
  // Owns the lines with number % pollers == `index`.
  PccPoller(PccRun& run, unsigned index);

  // PccController::poll() of this poller.
  TimeNs poll(TimeNs now);

  // Held by poll(), and by callers of the functions below.
  std::mutex& lock() { return lock_; }
  // Adds newly active queue pairs and drops inactive ones.
  void scan();
  // Null for an inactive queue pair. `line` must belong to this poller.
  PccQp* find(uint32_t line) { return qps_[line / run_.pollers].get(); }
  // Visits queue pairs in the order of their numbers.
  template <class Function>
  void for_each(Function function) {
    for (auto& qp : qps_) {
      if (qp) function(*qp);
    }
  }
  void apply(PccQp& qp, unsigned slot);
  // Reschedules after a change of the interval; `old` is the earlier value.
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
  void take_events();
  void wake(PccQp& qp);
  void find_listeners();
  void schedule(PccQp& qp);
  void schedule_all();
  void start_fresh(TimeNs now);
  PccQp* take_due(TimeNs now);
  void step(PccQp& qp, PccCall& call);
  void count_rest(PccQp& qp, PccCall& call);
  void announce_call(const PccQp& qp);
  void note_damage(const PccQp& qp, const PccAlgorithm& algorithm);

  PccRun& run_;
  const unsigned index_;
  std::mutex lock_;
  uint32_t changes_seen_ = 0;
  uint64_t events_seen_;      // number of events read
  uint64_t overwritten_ = 0;  // events that it did not read in time
  bool listens_ = false;      // a queue pair may want events
  TimeNs last_now_ = 0;
  std::vector<std::unique_ptr<PccQp>> qps_;  // by place: line / pollers
  std::vector<uint32_t> fresh_;              // places found since the last poll()
  PccAgenda agenda_;                         // an entry is stale if the queue pair's `next` differs
  PccReads reads_;
  Counter calls_;
  std::atomic<uint64_t> current_{0};  // the call in progress; 0: none
};

}  // namespace rocefs
