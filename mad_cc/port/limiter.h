// SaLimiter: how many SA requests of one port are outstanding: the vendor's MAD congestion control.
// Requests beyond max_outstanding wait in a FIFO of queue_size; one that finds it full is refused
// and counted in `drops`; one that waits too long expires, which is no drop.
//
// Sans-IO. Whoever sends MADs offers each request that concerns() says is one, and tells when it is
// over. Core thread; counters are read by any thread.
//
// Source: the vendor's MAD congestion control text (semantics kDoc); kOfed4 and kOfed25 are what
// its drivers of these releases are said to do instead (features M1 to M14).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>

#include "core/base/counter.h"
#include "core/base/time.h"
#include "mad_cc/mad/mad.h"

namespace rocefs {

// What differs:
//           limits are  a request waits at most                     a raised max_outstanding
//  kDoc     the port's  time_sa_mad                                 drains the queue at once
//  kOfed4   the port's  timeout * (retries + 1) - time_sa_mad       lets new requests overtake; of
//                                                                   the queue one goes per answer
//  kOfed25  an agent's  for ever                                    drains the queue at once
// kOfed4: where nothing is left of a request's time-outs, it expires at the instant it is queued.
// kOfed25: time_sa_mad is for the answer: response_timeout_ms(). A max_outstanding of 0 is no
// limit, a time_sa_mad of 0 leaves each request its own time-out.
enum class MadSemantics : uint8_t { kDoc, kOfed4, kOfed25 };

struct LimiterCounters {
  Counter drops, sent, expired;
  Counter outstanding, queued;  // now
};

class SaLimiter {
 public:
  struct Settings {
    MadSemantics semantics = MadSemantics::kDoc;
    uint64_t max_outstanding = 16;  // 0: no limit
    uint64_t queue_size = 16;
    uint64_t time_sa_mad_ms = 20;
    bool operator==(const Settings&) const = default;
  };
  // What a port begins with under these semantics (M9).
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
  // Whose requests they are. It may call the limiter from within these.
  class Sender {
   public:
    virtual ~Sender() = default;
    // A request that waited is to be sent now: it is outstanding.
    virtual void transmit(uint64_t id, TimeNs now) = 0;
    // A request waited too long and is forgotten: its user is told IB_WC_RESP_TIMEOUT_ERR.
    virtual void expire(uint64_t id, TimeNs now) = 0;
  };

  explicit SaLimiter(Sender& sender) : sender_(sender) {}

  // SubnAdm, Get or Set, with a time-out. Others pass (M11).
  static bool concerns(const mad::Mad& mad, uint32_t timeout_ms);

  Verdict offer(const Request& request, TimeNs now);
  // Answered, timed out or cancelled, whether it was outstanding or waited. Unknown ids are
  // ignored.
  void over(uint64_t id, TimeNs now);
  // All are forgotten without a word to the sender, who flushes them itself: the port went (M14).
  void clear();
  // Nothing that is outstanding or waits is lost, whatever changes; how long a request may wait was
  // decided when it was queued. What may go now goes at this instant, kOfed4 apart: kSlice of them
  // from within this, the rest from within expire().
  void configure(const Settings& settings, TimeNs now);
  const Settings& settings() const { return settings_; }
  // How long its sender waits for an answer to each transmission of it, at least 1: the request's
  // own time-out, but in kOfed25 its share of time_sa_mad where that is set.
  uint32_t response_timeout_ms(const Request& request) const;

  // When expire() has something to do next; kNever: not before something else happens.
  TimeNs next_expiry() const;
  // Those whose time is up by `now`; not what their senders offer instead from within that. And
  // what is left of those that may go. kSlice of them: next_expiry() is `now` while that is
  // unfinished().
  void expire(TimeNs now);
  bool unfinished() const { return unfinished_ != Unfinished::kNothing; }
  static constexpr uint64_t kSlice = 1024;

  LimiterCounters& counters() { return counters_; }

 private:
  struct Entry {
    uint64_t id;
    uint32_t agent;
    uint64_t order = 0;  // of the queue, from 1; 0: outstanding
    TimeNs deadline = kNever;
  };
  // The queue, first in, first out: of one agent, or of all.
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
  // Whether it was outstanding.
  bool forget(std::unordered_map<uint64_t, Entry>::iterator entry);
  void publish();
  enum class Unfinished : uint8_t { kNothing, kDraining, kExpiring };
  void make_room(uint32_t agent, TimeNs now);
  void drain(TimeNs now);
  void drain_slice(TimeNs now);
  void let_go(Entry& entry, TimeNs now);
  bool expire_one(TimeNs now);
  Entry* next_ready();
  Entry* next_of_agents();

  Sender& sender_;
  Settings settings_;
  LimiterCounters counters_;
  std::unordered_map<uint64_t, Entry> entries_;  // by id
  std::map<uint32_t, Agent> agents_;             // that have entries
  Fifo queue_;
  std::set<std::pair<TimeNs, uint64_t>> deadlines_;  // and order
  uint64_t outstanding_ = 0;
  uint64_t last_order_ = 0;
  // What drain() has still to look at: kOfed4: how many answers came; kOfed25: whose.
  uint64_t answers_ = 0;
  std::deque<uint32_t> answered_;
  bool draining_ = false;
  Unfinished unfinished_ = Unfinished::kNothing;
  TimeNs unfinished_since_ = 0;
  uint64_t newest_ = 0;  // order, of those that expire
};

}  // namespace rocefs
