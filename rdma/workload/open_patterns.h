// Patterns whose starts follow the clock alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/rng.h"
#include "rdma/workload/pattern.h"
#include "rdma/workload/size_distribution.h"

namespace rocefs {

// Each host is a Poisson process with draws of its own: another host's rate or presence does not
// change them.
class PoissonPattern final : public Pattern {
 public:
  struct Source {
    double mean_gap_ns;  // between two starts
    Rng rng;
  };
  PoissonPattern(std::vector<Source> sources, SizeDistribution sizes, TimeNs start);
  bool follows_clock() const override { return true; }

 private:
  void taken(TimeNs at, const FlowStart& flow) override;
  void plan_next(uint32_t from);

  std::vector<Source> sources_;
  // Last start of each source: whole nanoseconds and the rest, so that the rate is right at any
  // time.
  struct Last {
    TimeNs whole;
    double rest;
  };
  std::vector<Last> last_;
  const SizeDistribution sizes_;
};

// Rounds at fixed times: some hosts at once send to one.
class IncastPattern final : public Pattern {
 public:
  struct Rule {
    uint64_t hosts = 0;
    std::vector<uint32_t> to;  // receivers, in turn; empty: one at random each time
    uint64_t senders = 0;
    SizeDistribution sizes;
    TimeNs start = 0, interval = 0;
    TimeNs jitter = 0;  // not above the interval: the next round is planned once this one has begun
    uint64_t rounds = 1;
  };
  IncastPattern(Rule rule, const Rng& rng);
  bool follows_clock() const override { return true; }
  uint64_t total() const override { return saturating_product(rule_.rounds, rule_.senders); }

 private:
  void taken(TimeNs at, const FlowStart& flow) override;
  void plan_round();

  const Rule rule_;
  Rng rng_;
  TimeNs next_round_;
  uint64_t round_ = 0, waiting_ = 0;  // starts of this round that have not been taken
};

// The flows of a file: lines TIME,FROM,TO,SIZE, in the order of time.
class TracePattern final : public Pattern {
 public:
  // Checks the whole file, so that nothing of it fails later. The reason of a failure is FILE:LINE:
  // WHY. Adds the ports that the file names to `hosts`.
  static Result<std::unique_ptr<Pattern>> open(const std::string& path,
                                               const std::vector<std::string>& all, TimeNs start,
                                               std::vector<std::string>& hosts);
  uint64_t total() const override { return lines_.size(); }
  bool follows_clock() const override { return true; }

 private:
  struct Line {
    TimeNs at;
    FlowStart flow;
  };
  explicit TracePattern(std::vector<Line> lines);
  void taken(TimeNs at, const FlowStart& flow) override;

  const std::vector<Line> lines_;
  size_t next_ = 0;
};

}  // namespace rocefs
