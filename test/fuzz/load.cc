// A [load] section: its keys, a line each; behind a line of % a distribution of sizes, behind
// another one the flows of a trace, or a GOAL schedule.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include <string>
#include <vector>

#include "core/base/fd.h"
#include "core/base/text.h"
#include "rdma/workload/load_spec.h"
#include "test/fuzz/fuzz.h"

using namespace rocefs;

namespace {

constexpr std::string_view kBar = "\n%\n";
constexpr int kStarts = 300;

template <class T>
bool refused(const Result<T>& result) {
  if (!result) fuzz::require(result.error().code > 0 && !result.error().reason.empty());
  return !result;
}

void sizes(std::string_view text) {
  Result<SizeDistribution> sizes = SizeDistribution::parse(text);
  if (refused(sizes)) return;
  fuzz::require(sizes->largest() <= kMaxLoadFlow && sizes->mean() > 0);
  uint64_t last = 1;
  for (double u : {0.0, 0.25, 0.5, 0.999, 0.9999999999999999}) {
    fuzz::require(sizes->at(u) >= last && sizes->at(u) <= sizes->largest());
    last = sizes->at(u);
  }
}

// The first flows of a load, each of which ends at once.
void starts(Load& load) {
  Pattern& pattern = *load.pattern;
  fuzz::require(load.hosts.size() >= 2 && pattern.total() > 0);
  uint64_t flows = 0;
  for (int taken = 0; taken < kStarts && pattern.due() != kNever; ++taken) {
    TimeNs now = pattern.due();
    fuzz::require(now >= 0);
    std::optional<FlowStart> flow = pattern.take();
    if (!flow) continue;
    fuzz::require(flows++ < pattern.total());
    fuzz::require(flow->from < load.hosts.size() && flow->to < load.hosts.size());
    fuzz::require(flow->from != flow->to && flow->bytes <= kMaxLoadFlow);
    pattern.flow_arrived(*flow, now);
    pattern.flow_ended(*flow, now);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string_view keys = text.substr(0, text.find(kBar));
  std::string_view rest = text.substr(std::min(keys.size() + kBar.size(), size));
  std::string_view cdf = rest.substr(0, rest.find(kBar));
  std::string_view trace = rest.substr(std::min(cdf.size() + kBar.size(), rest.size()));
  sizes(cdf);
  Fd file(::memfd_create("trace", MFD_CLOEXEC));
  fuzz::require(::write(file.get(), trace.data(), trace.size()) ==
                static_cast<ssize_t>(trace.size()));
  LoadSpec spec;
  spec.name = "l";
  for (std::string_view line : split(keys, "\n")) {
    size_t equals = std::min(line.find('='), line.size());
    std::string_view key = line.substr(0, equals),
                     value = line.substr(std::min(equals + 1, line.size()));
    // No other file of this machine.
    if (key == "file") value = "trace";
    if (key == "cdf" && value.find('/') != value.npos) continue;
    (void)refused(set_load_key(spec, key, value));
  }
  std::string line = "l " + std::string(keys);
  Result<LoadSpec> stored = parse_load(line);
  if (!refused(stored)) fuzz::require(stored->name == "l" && stored->file.empty());
  if (!spec.file.empty()) spec.file = fmt::format("/proc/self/fd/{}", file.get());
  std::vector<LoadHost> hosts;
  for (int i = 0; i < 8; ++i) hosts.push_back({fmt::format("h{}", i), 100'000'000'000});
  Result<Load> load = make_load(spec, hosts, 1, "/nonexistent/", std::nullopt);
  if (!refused(load)) starts(*load);
  return 0;
}
