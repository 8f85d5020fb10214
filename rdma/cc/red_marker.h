// RedMarker: the congestion point of DCQCN (Zhu et al., SIGCOMM 2015, section 3.1): marks with a
// probability that is 0 up to Kmin, rises linearly to Pmax at Kmax, and is 1 beyond.
#pragma once

#include <cstdint>

#include "core/base/rng.h"

namespace rocefs {

struct EcnSettings {
  bool enable = false;
  uint64_t kmin = 0, kmax = 0;  // octets; kmin <= kmax
  double pmax = 0;
  bool at_dequeue = false;
};

class RedMarker {
 public:
  explicit RedMarker(const Rng& rng) : rng_(rng) {}

  // Takes effect at once.
  void set(const EcnSettings& settings) {
    settings_ = settings;
    uint64_t width = settings.kmax - settings.kmin;
    slope_ = width ? settings.pmax / static_cast<double>(width) : 0;
  }
  void restart(const Rng& rng) { rng_ = rng; }
  bool at_enqueue() const { return settings_.enable && !settings_.at_dequeue; }
  bool at_dequeue() const { return settings_.enable && settings_.at_dequeue; }

  double probability(uint64_t queued) const {
    if (queued <= settings_.kmin) return 0;
    if (queued > settings_.kmax) return 1;
    return slope_ * static_cast<double>(queued - settings_.kmin);
  }
  // Decides whether to mark a packet that enters or leaves a queue of `queued` octets.
  bool marks(uint64_t queued) { return rng_.chance(probability(queued)); }

 private:
  Rng rng_;
  EcnSettings settings_;
  double slope_ = 0;  // per octet above Kmin
};

}  // namespace rocefs
