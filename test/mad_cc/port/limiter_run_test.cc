// Limiter compared with a simple model: vectors, counted anew each time.
#include <catch2/catch.hpp>

#include "core/base/rng.h"
#include "test/mad_cc/port/limited.h"

using namespace rocefs;

namespace {

using Settings = SaLimiter::Settings;

class Model {
 public:
  explicit Model(const Settings& settings) : settings_(settings) {}

  void offer(const SaLimiter::Request& request, TimeNs now) {
    size_t out = count(false, request.agent), waiting = count(true, request.agent);
    bool room = settings_.max_outstanding == 0 || out < settings_.max_outstanding;
    if (room && (waiting == 0 || settings_.semantics == MadSemantics::kOfed4)) {
      say("sends", request.id);
      ++sent_;
      all_.push_back({request.id, request.agent, false, -1});
    } else if (waiting < settings_.queue_size) {
      say("waits", request.id);
      all_.push_back({request.id, request.agent, true, until(request, now)});
    } else {
      say("refused", request.id);
      ++drops_;
    }
  }
  void over(uint64_t id) {
    for (size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].id != id) continue;
      One one = all_[i];
      all_.erase(all_.begin() + static_cast<long>(i));
      if (!one.waits)
        release_next(one.agent, settings_.semantics == MadSemantics::kOfed4 ? 1 : SIZE_MAX);
      return;
    }
  }
  void configure(const Settings& settings) {
    settings_ = settings;
    for (uint32_t agent = 0; agent < 4; ++agent) {
      if (settings.semantics != MadSemantics::kOfed4) release_next(agent, SIZE_MAX);
    }
  }
  void clear() { all_.clear(); }
  // Expires up to `until`, each at its time; at equal times in the order of the queue.
  void pass(TimeNs until) {
    for (;;) {
      size_t first = all_.size();
      for (size_t i = 0; i < all_.size(); ++i) {
        if (!all_[i].waits || all_[i].until < 0 || all_[i].until > until) continue;
        if (first == all_.size() || all_[i].until < all_[first].until) first = i;
      }
      if (first == all_.size()) return;
      log += fmt::format("expired{}@{}us ", all_[first].id, all_[first].until / kMicrosecond);
      ++expired_;
      all_.erase(all_.begin() + static_cast<long>(first));
    }
  }
  std::string counts() const {
    size_t out = 0;
    for (const One& one : all_) out += !one.waits;
    return fmt::format("outstanding {} queued {} sent {} drops {} expired {}", out,
                       all_.size() - out, sent_, drops_, expired_);
  }
  std::vector<uint64_t> known() const {
    std::vector<uint64_t> ids;
    for (const One& one : all_) ids.push_back(one.id);
    return ids;
  }
  std::string log;

 private:
  struct One {
    uint64_t id;
    uint32_t agent;
    bool waits;
    TimeNs until;  // -1: for ever
  };

  size_t count(bool waits, uint32_t agent) const {
    size_t number = 0;
    for (const One& one : all_) {
      bool counts = settings_.semantics != MadSemantics::kOfed25 || one.agent == agent;
      number += counts && one.waits == waits;
    }
    return number;
  }
  void release_next(uint32_t agent, size_t most) {
    for (One& one : all_) {
      bool turn = settings_.semantics != MadSemantics::kOfed25 || one.agent == agent;
      size_t out = count(false, agent);
      bool room = settings_.max_outstanding == 0 || out < settings_.max_outstanding;
      if (!one.waits || !turn || !room || most == 0) continue;
      --most;
      one.waits = false;
      ++sent_;
      say("sent", one.id);
    }
  }
  TimeNs until(const SaLimiter::Request& request, TimeNs now) const {
    auto tries = static_cast<__int128>(request.retries) + 1;
    __int128 kept = settings_.time_sa_mad_ms;
    __int128 wait =
        settings_.semantics == MadSemantics::kDoc ? kept : tries * request.timeout_ms - kept;
    if (wait < 0) wait = 0;
    __int128 until = now + wait * kMillisecond;
    bool for_ever = settings_.semantics == MadSemantics::kOfed25 || until > (kNever - 1);
    return for_ever ? -1 : static_cast<TimeNs>(until);
  }
  void say(const char* what, uint64_t id) { log += fmt::format("{}{} ", what, id); }

  Settings settings_ = SaLimiter::defaults(MadSemantics::kDoc);
  std::vector<One> all_;  // in the order of their offers
  uint64_t sent_ = 0, drops_ = 0, expired_ = 0;
};

Settings random_settings(Rng& rng, MadSemantics semantics) {
  return {semantics, 1 + rng.below(6), 1 + rng.below(8), 1 + rng.below(30)};
}

void run(uint64_t seed) {
  Rng rng(seed, "limiter");
  auto semantics = static_cast<MadSemantics>(rng.below(3));
  bool switches = rng.below(2) == 0;
  Limited port(semantics);
  Model model(SaLimiter::defaults(semantics));
  auto configure = [&](const Settings& settings) {
    port.limiter.configure(settings, port.now);
    model.configure(settings);
  };
  configure(random_settings(rng, semantics));
  for (int step = 0; step < 200; ++step) {
    uint64_t what = rng.below(100);
    if (what < 50) {
      port.timeout_ms = static_cast<uint32_t>(rng.below(20) == 0 ? UINT32_MAX : 1 + rng.below(40));
      port.retries = static_cast<uint32_t>(rng.below(20) == 0 ? UINT32_MAX : rng.below(3));
      auto agent = static_cast<uint32_t>(rng.below(4));
      port.offer(agent);
      model.offer({port.last_id, agent, port.timeout_ms, port.retries}, port.now);
    } else if (what < 80) {
      std::vector<uint64_t> known = model.known();
      uint64_t id =
          known.empty() || rng.below(10) == 0 ? rng.below(300) : known[rng.below(known.size())];
      port.limiter.finished(id, port.now);
      model.over(id);
    } else if (what < 92) {
      port.pass(static_cast<TimeNs>(rng.below(8)) * kMillisecond);
      model.pass(port.now);
    } else if (what < 99) {
      if (switches) semantics = static_cast<MadSemantics>(rng.below(3));
      configure(random_settings(rng, semantics));
    } else {
      port.limiter.clear();
      model.clear();
    }
    REQUIRE(port.log == model.log);
    REQUIRE(port.counts() == model.counts());
  }
  for (uint64_t id : model.known()) {
    port.limiter.finished(id, port.now);
    model.over(id);
  }
  port.pass(kSecond * 3600);
  model.pass(port.now);
  REQUIRE(port.log == model.log);
  REQUIRE(port.counts() == model.counts());
}

}  // namespace

TEST_CASE("limiter: 1000 random runs match a simple model, step by step") {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    CAPTURE(seed);
    run(seed);
  }
}

// Time per request must not depend on the queue's length, up to 2^20.
TEST_CASE("limiter: the longest possible queue cancels, sends and expires its requests") {
  Limited port(MadSemantics::kDoc);
  constexpr uint64_t kMaxQueued = 1 << 20;
  port.limiter.configure({MadSemantics::kDoc, 1, kMaxQueued, 10'000}, port.now);
  port.offer(1);
  for (uint64_t i = 0; i < kMaxQueued; ++i)
    port.limiter.offer({++port.last_id, 1, 1000, 0}, port.now);
  port.offer(1);
  CHECK(port.log == fmt::format("sends1 refused{} ", kMaxQueued + 2));
  CHECK(port.counts() ==
        fmt::format("outstanding 1 queued {} sent 1 drops 1 expired 0", kMaxQueued));
  // Cancels every second one, from the back; then half of the rest is sent, half expires.
  for (uint64_t id = kMaxQueued + 1; id > 1; id -= 2) port.limiter.finished(id, port.now);
  port.on_transmit = port.on_expire = [&](uint64_t) { port.log.clear(); };
  port.set(&Settings::max_outstanding, kMaxQueued / 4 + 1);
  while (port.limiter.unfinished()) port.limiter.expire(port.now);
  CHECK(port.counts() == fmt::format("outstanding {} queued {} sent {} drops 1 expired 0",
                                     kMaxQueued / 4 + 1, kMaxQueued / 4, kMaxQueued / 4 + 1));
  port.pass(10 * kSecond);
  CHECK(port.counts() == fmt::format("outstanding {} queued 0 sent {} drops 1 expired {}",
                                     kMaxQueued / 4 + 1, kMaxQueued / 4 + 1, kMaxQueued / 4));
}
