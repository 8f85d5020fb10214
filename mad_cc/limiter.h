// SaLimiter: how many SA requests of one port are outstanding: the vendor's MAD congestion control.
// Requests beyond max_outstanding wait in a FIFO of queue_size; one that finds it full is refused
// and counted in `drops`; one that waits too long expires.
//
// Sans-IO. Whoever sends MADs offers each request that concerns() says is one, and tells when it is
// over. Core thread; counters are read by any thread.
//
// Source: the vendor's MAD congestion control text (semantics kDoc); kOfed4 and kOfed25 are what
// its drivers of these releases are said to do instead (features M1 to M14).
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>

#include "core/counter.h"
#include "core/time.h"
#include "mad_cc/mad.h"

namespace rocefs {

enum class MadSemantics : uint8_t { kDoc, kOfed4, kOfed25 };

struct LimiterCounters {
  Counter drops, sent, expired;
  Counter outstanding, queued;  // now
};

class SaLimiter {
 public:
  struct Settings {
    MadSemantics semantics = MadSemantics::kDoc;
    uint64_t max_outstanding = 16;
    uint64_t queue_size = 16;
    uint64_t time_sa_mad_ms = 20;
  };
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
  void configure(const Settings& settings, TimeNs now);
  const Settings& settings() const { return settings_; }
  // How long its sender waits for an answer to each transmission of it: kOfed25 has its own idea.
  uint32_t response_timeout_ms(const Request& request) const;

  // When expire() has something to do next; kNever: not before something else happens.
  TimeNs next_expiry() const;
  void expire(TimeNs now);

  LimiterCounters& counters() { return counters_; }

 private:
  Sender& sender_;
  Settings settings_;
  LimiterCounters counters_;
};

}  // namespace rocefs
