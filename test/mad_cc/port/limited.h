// Limiter with a sender that logs the calls it gets.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>

#include "mad_cc/port/limiter.h"

namespace rocefs {

struct Limited final : SaLimiter::Sender {
  explicit Limited(MadSemantics semantics) {
    limiter.configure(SaLimiter::defaults(semantics), now);
  }

  void transmit(uint64_t id, TimeNs at) override {
    log += fmt::format("sent{} ", id);
    if (at != now) log += "LATE ";
    if (on_transmit) on_transmit(id);
  }
  void expire(uint64_t id, TimeNs at) override {
    log += fmt::format("expired{}@{}us ", id, at / kMicrosecond);
    if (on_expire) on_expire(id);
  }

  SaLimiter::Verdict offer(uint32_t agent) {
    SaLimiter::Verdict verdict = limiter.offer({++last_id, agent, timeout_ms, retries}, now);
    const char* said = verdict == SaLimiter::Verdict::kSend   ? "sends"
                       : verdict == SaLimiter::Verdict::kWait ? "waits"
                                                              : "refused";
    log += fmt::format("{}{} ", said, last_id);
    return verdict;
  }
  // Advances the time and runs each expiry at its instant.
  void pass(TimeNs duration) {
    TimeNs until = now + duration;
    while (limiter.next_expiry() <= until) {
      now = std::max(now, limiter.next_expiry());
      limiter.expire(now);
    }
    now = until;
  }
  void set(uint64_t SaLimiter::Settings::*member, uint64_t value) {
    SaLimiter::Settings settings = limiter.settings();
    settings.*member = value;
    limiter.configure(settings, now);
  }
  std::string counts() {
    LimiterCounters& counters = limiter.counters();
    return fmt::format("outstanding {} queued {} sent {} drops {} expired {}",
                       counters.outstanding.get(), counters.queued.get(), counters.sent.get(),
                       counters.drops.get(), counters.expired.get());
  }

  SaLimiter limiter{*this};
  TimeNs now = 0;
  uint32_t timeout_ms = 1000, retries = 0;
  uint64_t last_id = 0;
  std::string log;
  std::function<void(uint64_t)> on_transmit, on_expire;
};

}  // namespace rocefs
