#include "rdma/workload/load_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/base/text.h"

namespace rocefs {
namespace {

constexpr std::pair<const char*, double> kQuantiles[] = {
    {"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}, {"p99.9", 0.999}};

}  // namespace

void LoadProgress::add(const LoadFlow& flow) {
  if (!flow.result) {
    if (failed++ == 0) {
      first_failure = fmt::format("{}: {}", flow.number, in_one_line(flow.result.error().reason));
    }
    return;
  }
  ++done;
  bytes += flow.what.bytes;
  auto time = static_cast<uint64_t>(std::max<TimeNs>(flow.end - flow.start, 0));
  fct_ns.add(time);
  fct_by_size[std::bit_ceil(std::max<uint64_t>(flow.what.bytes, 1024))].add(time);
}

void LoadProgress::add(const RoundTimes& round) {
  ++rounds;
  rounds_ns += round.end - round.start;
}

std::string LoadProgress::text() const {
  std::string text =
      fmt::format("started {}\ndone {}\nfailed {}\nbytes {}\n", started, done, failed, bytes);
  if (failed > 0) text += fmt::format("first_failure {}\n", first_failure);
  if (rounds > 0) {
    text += fmt::format("rounds {}\nround_ns_mean {:.0f}\n", rounds,
                        static_cast<double>(rounds_ns) / static_cast<double>(rounds));
  }
  if (done == 0) return text;
  text += fmt::format("fct_ns_mean {:.0f}\n", fct_ns.mean());
  for (const auto& [name, part] : kQuantiles) {
    text += fmt::format("fct_ns_{} {}\n", name, fct_ns.quantile(part));
  }
  text += fmt::format("fct_ns_max {}\n", fct_ns.max());
  for (const auto& [size, times] : fct_by_size) {
    text += fmt::format("up_to_{} flows {} mean {:.0f}", size, times.count(), times.mean());
    for (const auto& [name, part] : kQuantiles) {
      text += fmt::format(" {} {}", name, times.quantile(part));
    }
    text += fmt::format(" max {}\n", times.max());
  }
  return text;
}

}  // namespace rocefs
