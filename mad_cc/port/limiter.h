// SaLimiter: limits the outstanding SA requests of one port: the vendor's MAD congestion control.
// Requests beyond max_outstanding wait in a FIFO of queue_size. A request that finds it full is
// refused and counted in `drops`; a request that waits too long expires, which is not a drop.
//
// Sans-IO. The sender offers each request to which the limiter applies_to(), and reports when it is
// finished(). Core thread; counters are read by any thread.
//
// Source: the vendor's MAD congestion control text (semantics kDoc). kOfed4 and kOfed25 follow the
// drivers of these releases instead (features M1 to M14).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>

#include "core/base/counter.h"
#include "core/base/time.h"
#include "mad_cc/mad/mad.h"
#include "mad_cc/port/limiter_knobs.h"

namespace rocefs {

struct LimiterCounters {
  Counter drops, sent, expired;
  Counter outstanding, queued;  // now
};
inline constexpr CounterRow<LimiterCounters> kLimiterCounters[] = {
    {"sent", &LimiterCounters::sent, "SA requests sent, at once or after they waited"},
    {"expired", &LimiterCounters::expired, "SA requests that waited too long, and were never sent"},
};
inline constexpr CounterRow<LimiterCounters> kLimiterGauges[] = {
    {"outstanding", &LimiterCounters::outstanding, "SA requests that are sent and not yet over"},
    {"queued", &LimiterCounters::queued, "SA requests that wait to be sent"},
};

class SaLimiter {
 public:
  using Settings = LimiterSettings;
  // Settings that a port starts with under these semantics (M9).
  static Settings defaults(MadSemantics semantics);

  struct Request {
    uint64_t id;     // of the sender's choice, one at a time
    uint32_t agent;  // kOfed25 limits each agent for itself
    uint32_t timeout_ms;
    uint32_t retries;
  };
  enum class Verdict : uint8_t {
    kSend,    // now: it is outstanding
    kWait,    // Sender hears of it again
    kRefuse,  // dropped and counted: EBUSY
  };
  // Sender: owner of the requests. May call the limiter from within these functions.
  class Sender {
   public:
    virtual ~Sender() = default;
    // Transmits a request that has waited; it is outstanding now.
    virtual void transmit(uint64_t id, TimeNs now) = 0;
    // Ends a request that waited too long with IB_WC_RESP_TIMEOUT_ERR; the limiter has forgotten
    // it.
    virtual void expire(uint64_t id, TimeNs now) = 0;
  };

  explicit SaLimiter(Sender& sender) : sender_(sender) {}

  // Returns whether `mad` is limited: SubnAdm, Get or Set, with a time-out. Others pass (M11).
  static bool applies_to(const mad::Mad& mad, uint32_t timeout_ms);

  Verdict offer(const Request& request, TimeNs now);
  // Reports that a request was answered, timed out or was cancelled, outstanding or waiting.
  // Ignores unknown ids.
  void finished(uint64_t id, TimeNs now);
  // Forgets all requests without calls to the sender, which flushes them itself: the port is
  // unbound (M14).
  void clear();
  // Changes the settings. Keeps every outstanding and waiting request; the wait of a queued request
  // does not change. Transmits what is allowed now, except under kOfed4: kSlice requests from
  // within this call, the rest from within expire().
  void configure(const Settings& settings, TimeNs now);
  const Settings& settings() const { return settings_; }
  // Returns how long the sender waits for an answer to each transmission, at least 1: the request's
  // own time-out, or under kOfed25 its part of a time_sa_mad that is not 0.
  uint32_t response_timeout_ms(const Request& request) const;

  // Returns the time of the next expire(); kNever if only another call can change anything.
  TimeNs next_expiry() const;
  // Expires requests whose deadline is `now` or earlier, but not those offered from within this
  // call, and continues an unfinished drain. Handles kSlice requests at a time: next_expiry() is
  // `now` while unfinished().
  void expire(TimeNs now);
  bool unfinished() const { return unfinished_ != Unfinished::kNothing; }
  static constexpr uint64_t kSlice = 1024;

  LimiterCounters& counters() { return counters_; }
  // Clears what has been counted since the begin, not what is outstanding or queued now.
  void clear_counters();

 private:
  struct Entry {
    uint64_t id;
    uint32_t agent;
    uint64_t order = 0;  // of the queue, from 1; 0: outstanding
    TimeNs deadline = kNever;
  };
  // Queue, first in, first out: of one agent, or of all.
  using Fifo = std::map<uint64_t, Entry*>;
  struct Agent {
    uint64_t outstanding = 0;
    Fifo queue;
  };

  uint64_t limit() const;
  TimeNs longest_wait(const Request& request) const;
  Verdict verdict(uint32_t agent) const;
  void enqueue(Entry& entry, Agent& agent, TimeNs wait, TimeNs now);
  void dequeue(Entry& entry, Agent& agent);
  // Removes the entry. Returns whether it was outstanding.
  bool forget(std::unordered_map<uint64_t, Entry>::iterator entry);
  void publish();
  enum class Unfinished : uint8_t { kNothing, kDraining, kExpiring };
  void make_room(uint32_t agent, TimeNs now);
  void drain(TimeNs now);
  void drain_slice(TimeNs now);
  void release_next(Entry& entry, TimeNs now);
  bool expire_one(TimeNs now);
  Entry* next_ready();
  Entry* next_of_agents();

  Sender& sender_;
  Settings settings_ = defaults(MadSemantics::kDoc);
  LimiterCounters counters_;
  std::unordered_map<uint64_t, Entry> entries_;  // by id
  std::map<uint32_t, Agent> agents_;             // that have entries
  Fifo queue_;
  std::set<std::pair<TimeNs, uint64_t>> deadlines_;  // and order
  uint64_t outstanding_ = 0;
  uint64_t last_order_ = 0;
  // Work left for drain(): the number of answers (kOfed4) or the agents they came for (kOfed25).
  uint64_t answers_ = 0;
  std::deque<uint32_t> answered_;
  bool draining_ = false;
  Unfinished unfinished_ = Unfinished::kNothing;
  TimeNs unfinished_since_ = 0;
  uint64_t newest_ = 0;  // order, of those that expire
};

}  // namespace rocefs
