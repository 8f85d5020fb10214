// Equilibria of windowed algorithms: queue and CNP probability according to their published steps,
// fairness and utilisation. All input comes from packets: marks by a switch, CNPs of receivers,
// windows of senders.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>

#include "core/base/units.h"
#include "test/pcc/at_work.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

struct Red {
  const char *kmin, *kmax, *pmax;
  double at(double queue) const {
    double low = number(kmin), high = number(kmax);
    if (queue <= low) return 0;
    return queue >= high ? 1 : std::stod(pmax) * (queue - low) / (high - low);
  }
  static double number(const char* text) { return static_cast<double>(*parse_size(text)); }
};

struct Setting {
  Incast::Shape shape;
  Red red;
  bool on_floor = false;
};

constexpr double kWai = 80, kFastSteps = 3, kMinWindow = 4096;
constexpr double kPollSeconds = 60e-6;

// Prediction: the window W for which cuts and increases balance, W P^3 = wai (1-P)^(F+1), where P =
// 1-(1-p)^n and n is the packets of a queue pair in a poll.
struct Prediction {
  double queue = 0, cnp = 0;
  Prediction(const Setting& setting, double idle_rtt_ns, double payload_bps) {
    double flows = setting.shape.flows;
    double bdp = payload_bps / 8 * idle_rtt_ns * 1e-9;
    double packets = payload_bps / 8 * kPollSeconds / (flows * setting.shape.mtu);
    double low = 0, high = 1e8;
    for (int i = 0; i < 200; ++i) {
      queue = (low + high) / 2;
      cnp = 1 - std::pow(1 - setting.red.at(queue), packets);
      double window = (bdp + queue) / flows;
      double surplus = window * std::pow(cnp, 3) - kWai * std::pow(1 - cnp, kFastSteps + 1);
      (surplus < 0 ? low : high) = queue;
    }
    double floor = flows * kMinWindow - bdp;
    if (queue >= floor) return;
    queue = floor;
    cnp = 1 - std::pow(1 - setting.red.at(queue), packets);
  }
};

double jain(const std::vector<double>& shares) {
  double sum = 0, squares = 0;
  for (double share : shares) {
    sum += share;
    squares += share * share;
  }
  return sum * sum / (static_cast<double>(shares.size()) * squares);
}

// Measurements of an incast during `duration`, after `before` to settle.
struct Seen {
  double queue = 0, cnp = 0, utilisation = 0, fairness = 0;
};

class Run {
 public:
  Run(const Setting& setting, const char* algorithm, Parameters parameters, uint64_t seed)
      : incast_(setting.shape, seed) {
    incast_.star.knobs.set("ecn/kmax", setting.red.kmax).set("ecn/kmin", setting.red.kmin);
    incast_.star.knobs.set("ecn/pmax", setting.red.pmax).set("ecn/enable", "1");
    for (unsigned host = 0; host < setting.shape.hosts; ++host) {
      owners_.push_back(std::make_unique<AtWork>(incast_.star, incast_.sender(host), algorithm,
                                                 parameters, seed + host));
    }
    incast_.start();
  }
  Incast& incast() { return incast_; }
  AtWork& owner(unsigned host) { return *owners_[host]; }

  Seen watch(TimeNs before, TimeNs duration) {
    constexpr TimeNs kStep = 5 * kMicrosecond;
    constexpr auto kPoll = static_cast<TimeNs>(kPollSeconds * 1e9);
    incast_.run(before);
    std::vector<double> bytes = received();
    double queue = 0, hits = 0, polls = 0;
    std::vector<uint64_t> cnps = counted();
    for (TimeNs passed = 0; passed < duration; passed += kStep) {
      incast_.run(kStep);
      queue += static_cast<double>(incast_.queue());
      if ((passed + kStep) % kPoll != 0) continue;
      std::vector<uint64_t> now = counted();
      for (size_t i = 0; i < now.size(); ++i) hits += now[i] != cnps[i];
      polls += static_cast<double>(now.size());
      cnps = std::move(now);
    }
    Seen seen;
    seen.queue = queue / static_cast<double>(duration / kStep);
    seen.cnp = hits / polls;
    std::vector<double> after = received();
    double sum = 0;
    for (size_t i = 0; i < after.size(); ++i) sum += after[i] -= bytes[i];
    seen.utilisation = sum * 8e9 / static_cast<double>(duration) / incast_.payload_bps();
    seen.fairness = jain(after);
    return seen;
  }

 private:
  // Acknowledged payload octets of each flow's queue pair.
  std::vector<double> received() {
    std::vector<double> all;
    for (auto& flow : incast_.flows) all.push_back(static_cast<double>(flow->stats->bytes.get()));
    return all;
  }
  std::vector<uint64_t> counted() {
    std::vector<uint64_t> all;
    for (unsigned host = 0; host < incast_.shape.hosts; ++host) {
      Device& device = incast_.sender(host);
      for (uint32_t qpn : active_qps(device)) {
        all.push_back(device.registers().signals_of(qpn)->cnps);
      }
    }
    return all;
  }

  Incast incast_;
  std::vector<std::unique_ptr<AtWork>> owners_;
};

}  // namespace

// Bands: queue 10 %, probability of a CNP in a poll 15 %.
TEST_CASE("pcc: windowed dcqcn settles at the equilibrium of its law, in both modes") {
  const Setting settings[] = {
      {{4, 4, 10'000'000'000, 1024}, {"5000", "200000", "0.02"}},
      {{4, 8, 10'000'000'000, 1024}, {"5000", "200000", "0.05"}},
      {{2, 2, 100'000'000'000, 4096}, {"50000", "1000000", "0.01"}},
      {{4, 8, 100'000'000'000, 4096}, {"50000", "1000000", "0.02"}},
      {{4, 16, 100'000'000'000, 1024}, {"50000", "1000000", "0.01"}},
      {{8, 32, 100'000'000'000, 4096}, {"50000", "2000000", "0.05"}},
      {{8, 128, 100'000'000'000, 4096}, {"50000", "200000", "0.1"}, true},
  };
  std::printf(
      "REPORT dcqcn mode  rate flows  mtu      queue  predicted   cnp  predicted  util  jain\n");
  for (const Setting& setting : settings) {
    for (const char* mode : {"0", "1"}) {
      Run run(setting, "dcqcn", {{"mode", mode}}, 1);
      Prediction predicted(setting, run.incast().idle_rtt_ns, run.incast().payload_bps());
      // Few cuts in a poll need more polls for the mean.
      TimeNs polls = setting.shape.flows == 2 ? 8000 : 834;
      Seen seen = run.watch(50 * kMillisecond, polls * 60 * kMicrosecond);
      std::printf("REPORT dcqcn %4s %4uG %5u %4u %10.0f %10.0f %.3f %10.3f %.3f %.3f\n", mode,
                  static_cast<unsigned>(setting.shape.rate_bps / 1'000'000'000),
                  setting.shape.flows, setting.shape.mtu, seen.queue, predicted.queue, seen.cnp,
                  predicted.cnp, seen.utilisation, seen.fairness);
      CHECK(seen.queue == Approx(predicted.queue).epsilon(0.10));
      CHECK(seen.cnp == Approx(predicted.cnp).epsilon(0.15));
      CHECK(seen.utilisation >= 0.97);
      CHECK(seen.fairness >= 0.95);
    }
  }
}

// Law: alpha is 100 octets, beta 0.5: P = alpha / (alpha + W / 2). It assumes the mean window; but
// larger windows have more marked packets, and cuts of larger windows need be fewer: by E[W]^2 /
// E[W^2], 0.86 for a sawtooth of one flow, less when windows move together. Band: 30 %.
TEST_CASE("pcc: aimd settles at the equilibrium of its law") {
  const Setting settings[] = {
      {{4, 8, 10'000'000'000, 1024}, {"5000", "400000", "0.01"}},
      {{4, 32, 10'000'000'000, 1024}, {"0", "1000000", "0.1"}},
      {{4, 64, 10'000'000'000, 1024}, {"0", "1000000", "0.1"}},
      {{8, 32, 100'000'000'000, 1024}, {"0", "2000000", "0.02"}},
      {{8, 128, 100'000'000'000, 1024}, {"0", "2000000", "0.02"}},
  };
  for (const Setting& setting : settings) {
    Run run(setting, "aimd", {}, 1);
    Seen seen = run.watch(50 * kMillisecond, 50 * kMillisecond + 40 * kMicrosecond);
    double bdp = run.incast().payload_bps() / 8 * run.incast().idle_rtt_ns * 1e-9;
    double window = (bdp + seen.queue) / setting.shape.flows;
    double predicted = 100 / (100 + window / 2);
    std::printf(
        "REPORT aimd %4uG %5u flows: queue %8.0f cnp %.4f predicted %.4f util %.3f jain %.3f\n",
        static_cast<unsigned>(setting.shape.rate_bps / 1'000'000'000), setting.shape.flows,
        seen.queue, seen.cnp, predicted, seen.utilisation, seen.fairness);
    CHECK(seen.cnp == Approx(predicted).epsilon(0.30));
    CHECK(seen.utilisation >= 0.97);
    CHECK(seen.fairness >= 0.95);
  }
}

// Input is packets alone: if the fabric loses CNPs, windows only grow and do not settle.
TEST_CASE("pcc: if CNPs are lost, dcqcn does not settle at its equilibrium") {
  Setting setting{{4, 8, 10'000'000'000, 1024}, {"5000", "200000", "0.05"}};
  Run run(setting, "dcqcn", {}, 1);
  std::vector<std::unique_ptr<Meddler>> meddlers;
  uint64_t lost = 0;
  for (unsigned host = 1; host <= setting.shape.hosts; ++host) {
    Link& link = run.incast().star.link(fmt::format("s-h{}", host));
    meddlers.push_back(std::make_unique<Meddler>(run.incast().star, link, 1, Meddler::Odds{}));
    meddlers.back()->script = [&](const wire::Parsed& parsed, Packet&) {
      lost += is_cnp(parsed);
      return is_cnp(parsed);
    };
  }
  Prediction predicted(setting, run.incast().idle_rtt_ns, run.incast().payload_bps());
  Seen seen = run.watch(50 * kMillisecond, 834 * 60 * kMicrosecond);
  CHECK(lost > 1000);
  CHECK(seen.cnp == 0);
  CHECK(seen.queue > 2 * predicted.queue);
}

namespace {

// Vegas: queue pairs that know the idle round trip and then get two windows, alternating by host.
struct Vegas {
  static constexpr double kAlpha = 4096, kBeta = 16384, kMss = 1024;
  Setting setting;
  Run run;
  Vegas(unsigned flows, uint64_t rate_bps, uint32_t low, uint32_t high)
      : setting{{flows, flows, rate_bps, 1024}, {"5000", "200000", "0"}},
        run(setting, "rttvegas", {{"timeout_us", "2000"}}, 1) {
    // Half of the bandwidth-delay product: no queue.
    Incast& incast = run.incast();
    auto idle = static_cast<uint32_t>(incast.payload_bps() / 8e9 * incast.idle_rtt_ns / flows / 2);
    hold(idle, idle);
    incast.run(5 * kMillisecond);
    hold(low, high);
    incast.run(kMillisecond);
    for (unsigned host = 0; host < flows; ++host) bound(host, 1024, 0x500000);
  }
  void bound(unsigned host, uint32_t least, uint32_t most) {
    std::string min = std::to_string(least), max = std::to_string(most);
    run.owner(host).update({{"min_window", min.c_str()}, {"max_window", max.c_str()}});
  }
  void hold(uint32_t low, uint32_t high) {
    for (unsigned host = 0; host < setting.shape.hosts; ++host) {
      uint32_t window = host % 2 ? high : low;
      bound(host, window, window);
    }
  }
  uint64_t timeouts() {
    uint64_t sum = 0;
    for (unsigned host = 0; host < setting.shape.hosts; ++host) {
      for (uint32_t qpn : active_qps(run.incast().sender(host))) {
        sum += run.owner(host).line(qpn).rtt_timeouts;
      }
    }
    return sum;
  }
};

}  // namespace

// Expected: from above the queue settles at 0.92 to 1.0 of N beta, from below between N alpha and N
// (alpha + mss); from both it stays unfair.
TEST_CASE("pcc: rttvegas settles at beta from above, and at alpha from below") {
  for (uint64_t rate_bps : {10'000'000'000ull, 100'000'000'000ull}) {
    for (unsigned flows : {4u, 8u}) {
      double n = flows;
      Vegas above(flows, rate_bps, 60'000, 60'000), below(flows, rate_bps, 2048, 2048),
          mixed(flows, rate_bps, 2048, 60'000);
      uint64_t early = above.timeouts();  // before windows are held
      Seen high = above.run.watch(40 * kMillisecond, 20 * kMillisecond);
      Seen low = below.run.watch(40 * kMillisecond, 20 * kMillisecond);
      Seen both = mixed.run.watch(40 * kMillisecond, 20 * kMillisecond);
      std::printf(
          "REPORT rttvegas %3uG %u flows: from above %.3f of N beta, from below %.2f N alpha, "
          "mixed: jain %.3f\n",
          static_cast<unsigned>(rate_bps / 1'000'000'000), flows, high.queue / (n * Vegas::kBeta),
          low.queue / (n * Vegas::kAlpha), both.fairness);
      CHECK(high.queue >= 0.92 * n * Vegas::kBeta);
      CHECK(high.queue <= 1.0 * n * Vegas::kBeta);
      CHECK(low.queue >= n * Vegas::kAlpha);
      CHECK(low.queue <= n * (Vegas::kAlpha + Vegas::kMss));
      CHECK(both.fairness >= 0.64);
      CHECK(both.fairness <= 0.85);
      CHECK(high.fairness >= 0.95);
      CHECK(low.fairness >= 0.95);
      CHECK(above.timeouts() == early);
    }
  }
}
