// Metrics: what a mount's files say, in the text format of Prometheus (version 0.0.4).
#pragma once

#include <mutex>
#include <string>

#include "tools/watch/getter.h"

namespace rocefs {

inline constexpr char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";

// Any thread; a scrape waits for another one in progress.
class Metrics {
 public:
  // `files` outlives it.
  explicit Metrics(const MountFiles& files);
  // Takes a look. Queues that were never used are left out.
  Result<std::string> scrape();

 private:
  std::mutex mutex_;
  Getter getter_;
};

}  // namespace rocefs
