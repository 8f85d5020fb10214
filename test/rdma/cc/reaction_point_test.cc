// The RP's law, number by number, compared with the paper; then each of its knobs.
#include "rdma/cc/reaction_point.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "test/rdma/congested.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr double kLine = 10e9;
constexpr double kG = 1.0 / 256;
constexpr TimeNs kT = 55 * kMicrosecond;
constexpr uint64_t kB = 10'000'000;

struct Rp {
  RpParameters parameters;
  ReactionPoint rp;
  double line = kLine;
  explicit Rp(Settings settings = {}) : parameters(rp_with(settings)) {}
  void cnp(TimeNs now) { rp.receive_cnp(parameters, line, now); }
  void advance(TimeNs now) { rp.advance(parameters, line, now); }
  void sent(uint64_t octets) { rp.sent(parameters, line, octets); }
};

}  // namespace

TEST_CASE("RP: the rate starts at the link's, and a CNP at alpha 1 halves it") {
  Rp one;
  CHECK(!one.rp.limited());
  one.cnp(1000);
  CHECK(one.rp.limited());
  CHECK(one.rp.rate_bps() == Approx(kLine / 2));
  CHECK(one.rp.target_bps() == Approx(kLine));
  CHECK(one.rp.alpha() == Approx(1.0));  // (1-g) 1 + g
}

TEST_CASE("RP: alpha decays each K without a CNP, and a cut uses alpha before its update") {
  Rp one({{"roce_rp/rpg_time_reset", "131071"}});
  one.cnp(0);
  // At 4.5 K alpha has decayed four times.
  one.cnp(kT * 9 / 2);
  double alpha = std::pow(1 - kG, 4), rate = kLine / 2 * (1 - alpha / 2);
  CHECK(one.rp.rate_bps() == Approx(rate).epsilon(1e-9));
  CHECK(one.rp.target_bps() == Approx(kLine / 2));
  alpha = (1 - kG) * alpha + kG;
  CHECK(one.rp.alpha() == Approx(alpha).epsilon(1e-12));
  // A CNP restarts K: within it nothing decays.
  one.cnp(kT * 9 / 2 + kT - 1);
  rate *= 1 - alpha / 2;
  CHECK(one.rp.rate_bps() == Approx(rate).epsilon(1e-9));
  CHECK(one.rp.alpha() == Approx((1 - kG) * alpha + kG).epsilon(1e-12));
}

TEST_CASE("RP: the timer halves the distance to the target five times, then adds RAI each time") {
  Rp one;
  one.line = 100e9;
  one.cnp(0);
  one.cnp(1);  // 25 of 50 Gbit/s
  double rate = 25e9, target = 50e9;
  CHECK(one.rp.rate_bps() == Approx(rate));
  for (int round = 1; round <= 40; ++round) {
    one.advance(1 + round * kT - 1);
    CHECK(one.rp.rate_bps() == Approx(rate).epsilon(1e-9));  // not a nanosecond before its time
    one.advance(1 + round * kT);
    if (round > 5) target += 40e6;
    rate = (rate + target) / 2;
    CHECK(one.rp.rate_bps() == Approx(rate).epsilon(1e-9));
    CHECK(one.rp.target_bps() == Approx(target).epsilon(1e-9));
  }
}

TEST_CASE("RP: the byte counter raises the rate each B octets, and a CNP restarts it") {
  Rp one({{"roce_rp/rpg_time_reset", "131071"}});
  one.line = 100e9;
  one.cnp(0);
  one.cnp(1);
  double rate = 25e9, target = 50e9;
  for (int round = 1; round <= 8; ++round) {
    one.sent(kB - 1);
    CHECK(one.rp.rate_bps() == Approx(rate).epsilon(1e-9));
    one.sent(1);
    if (round > 5) target += 40e6;
    rate = (rate + target) / 2;
    CHECK(one.rp.rate_bps() == Approx(rate).epsilon(1e-9));
  }
  one.sent(kB - 1);
  one.cnp(2);  // the octets so far are forgotten, and the stage
  double after = one.rp.rate_bps();
  one.sent(1);
  CHECK(one.rp.rate_bps() == after);
  one.sent(kB - 1);
  CHECK(one.rp.rate_bps() == Approx((after + rate) / 2).epsilon(1e-9));
  CHECK(one.rp.target_bps() == Approx(rate).epsilon(1e-9));
}

TEST_CASE("RP: when timer and byte counter are both past F, the target rises by RHAI") {
  Rp one;
  one.line = 400e9;
  for (TimeNs i = 0; i < 4; ++i) one.cnp(i);
  double target = one.rp.target_bps();
  one.advance(3 + 7 * kT);  // five rounds of recovery, two additive
  CHECK(one.rp.target_bps() == Approx(target + 2 * 40e6).epsilon(1e-9));
  for (int i = 0; i < 6; ++i) one.sent(kB);
  CHECK(one.rp.target_bps() == Approx(target + 8 * 40e6).epsilon(1e-9));
  one.sent(kB);
  CHECK(one.rp.target_bps() == Approx(target + 8 * 40e6 + 400e6).epsilon(1e-9));
}

TEST_CASE("RP: limiting ends at the link's rate, and the next CNP uses the decayed alpha") {
  Rp one;
  one.cnp(0);
  TimeNs now = 0;
  while (one.rp.limited()) one.advance(now += kT);
  // After nine halvings 1/1024 of the line rate is left of the 5 G.
  CHECK(now == 9 * kT);
  one.cnp(now + 100 * kT);
  double alpha = std::pow(1 - kG, 109);
  CHECK(one.rp.rate_bps() == Approx(kLine * (1 - alpha / 2)).epsilon(1e-9));
}

TEST_CASE("RP: a period that a store shortens brings one event at most, not those it never had") {
  constexpr std::string_view kTimer = "roce_rp/rpg_time_reset", kBytes = "roce_rp/rpg_byte_reset";
  struct Case {
    std::string_view timer, bytes;
  };
  for (const Case& shorter : {Case{"60", "4294967295"}, Case{"131071", "60"}}) {
    Rp one({{kTimer, "131071"}, {kBytes, "4294967295"}});
    one.cnp(0);
    // For 100 ms and 100 MB no event is due.
    one.advance(100 * kMillisecond);
    one.sent(100'000'000);
    REQUIRE(one.rp.rate_bps() == Approx(kLine / 2));
    one.parameters = rp_with({{kTimer, shorter.timer}, {kBytes, shorter.bytes}});
    one.advance(100 * kMillisecond + 1);
    one.sent(1);
    CHECK(one.rp.rate_bps() == Approx(kLine * 3 / 4));  // the first round of fast recovery
  }
}

TEST_CASE("RP: a shorter K lets alpha decay once for the time before it") {
  constexpr std::string_view kTimer = "roce_rp/rpg_time_reset", kK = "roce_rp/dce_tcp_rtt";
  Rp one({{kTimer, "131071"}, {kK, "131071"}});
  one.cnp(0);
  one.parameters = rp_with({{kTimer, "131071"}, {kK, "55"}});
  one.cnp(100 * kMillisecond);
  const double alpha = 1 - kG;
  CHECK(one.rp.rate_bps() == Approx(kLine / 2 * (1 - alpha / 2)).epsilon(1e-9));
}

TEST_CASE("RP: each knob has its effect") {
  auto after_first = [](Settings settings) {
    Rp one(settings);
    one.cnp(0);
    return one.rp.rate_bps();
  };
  CHECK(after_first({{"roce_rp/rpg_gd", "2"}}) == Approx(kLine * 3 / 4));
  CHECK(after_first({{"roce_rp/initial_alpha_value", "512"}}) == Approx(kLine * 3 / 4));
  CHECK(after_first({{"roce_rp/rpg_min_dec_fac", "90"}}) == Approx(kLine * 9 / 10));
  CHECK(after_first({{"roce_rp/rpg_min_rate", "7000"}}) == Approx(7e9));
  CHECK(after_first({{"roce_rp/rpg_max_rate", "6000"}}) == Approx(3e9));
  CHECK(after_first({{"roce_rp/rate_to_set_on_first_cnp", "1234"}}) == Approx(1234e6));
  {  // cuts come no closer than the period
    Rp one({{"roce_rp/rate_reduce_monitor_period", "100"}});
    one.cnp(0);
    one.cnp(50 * kMicrosecond);
    CHECK(one.rp.target_bps() == Approx(kLine));
    one.cnp(100 * kMicrosecond);
    CHECK(one.rp.target_bps() < kLine * 0.9);
  }
  {  // the target stays where nothing has increased since the last cut
    for (const char* clamp : {"0", "1"}) {
      Rp one({{"roce_rp/clamp_tgt_rate", clamp}});
      one.cnp(0);
      one.cnp(1);
      CHECK(one.rp.target_bps() == Approx(*clamp == '0' ? kLine : kLine / 2));
    }
    for (const char* timed : {"0", "1"}) {
      Rp one({{"roce_rp/clamp_tgt_rate", "0"}, {"roce_rp/clamp_tgt_rate_after_time_inc", timed}});
      one.cnp(0);
      one.cnp(kT);
      CHECK(one.rp.target_bps() == Approx(*timed == '0' ? kLine : kLine * 3 / 4));
    }
  }
  {  // g and K
    Rp one({{"roce_rp/dce_tcp_g", "512"}, {"roce_rp/dce_tcp_rtt", "100"}});
    one.cnp(0);
    one.cnp(250 * kMicrosecond);  // twice halved
    CHECK(one.rp.alpha() == Approx(0.25 * 0.5 + 0.5));
  }
  {  // F, RAI, RHAI, T and B
    Rp one({{"roce_rp/rpg_threshold", "0"},
            {"roce_rp/rpg_ai_rate", "100"},
            {"roce_rp/rpg_hai_rate", "1000"},
            {"roce_rp/rpg_time_reset", "10"},
            {"roce_rp/rpg_byte_reset", "1000"}});
    one.cnp(0);
    one.cnp(1);
    CHECK(one.rp.target_bps() == Approx(kLine / 2));
    one.advance(1 + 10 * kMicrosecond);
    CHECK(one.rp.target_bps() == Approx(kLine / 2 + 100e6));
    one.sent(1000);
    CHECK(one.rp.target_bps() == Approx(kLine / 2 + 200e6));
    one.sent(1000);
    CHECK(one.rp.target_bps() == Approx(kLine / 2 + 1200e6));
  }
  {  // without a byte counter
    Rp one({{"roce_rp/rpg_byte_reset", "0"}});
    one.cnp(0);
    one.sent(uint64_t{1} << 40);
    CHECK(one.rp.rate_bps() == Approx(kLine / 2));
  }
}
