// Cost of a packet in a large fabric: a permutation over the 1,024 hosts of a fat-tree by `rocefs
// sim`, against one over 32 hosts, which fits the caches; the start of the process does not count.
// And the time that the large one takes on two threads, against that without regions.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>

#include "core/base/clock.h"
#include "test/bench/bench.h"
#include "test/bench/benches.h"
#include "test/bench/mount.h"

namespace rocefs::bench {
namespace {

constexpr int kRounds = 9;

// A directory that is removed at the end.
struct Scratch {
  std::string path = "/tmp/rocefs-bench-XXXXXX";
  Scratch() {
    if (!::mkdtemp(path.data())) throw std::runtime_error("mkdtemp");
  }
  ~Scratch() { std::filesystem::remove_all(path); }
};

// Nanoseconds of CPU for each packet-hop of a simulation.
double ns_per_hop(const std::string& file) {
  const std::string command = fmt::format("{} sim {} 2>&1", Mount::daemon(), file);
  std::unique_ptr<FILE, int (*)(FILE*)> output(::popen(command.c_str(), "r"), ::pclose);
  double seconds = 0, millions = 0;
  for (char line[512]; output && std::fgets(line, sizeof line, output.get());) {
    if (std::sscanf(line, "%lf s of CPU, %lf M packet-hops", &seconds, &millions) == 2) break;
  }
  if (millions <= 0) throw std::runtime_error("no simulation: " + command);
  return 1e3 / millions;
}

// Seconds that a simulation takes, its start included.
double seconds(const std::string& arguments) {
  const std::string command = fmt::format("{} sim {} > /dev/null 2>&1", Mount::daemon(), arguments);
  const TimeNs begun = monotonic_ns();
  if (std::system(command.c_str()) != 0) throw std::runtime_error("no simulation: " + command);
  return static_cast<double>(monotonic_ns() - begun) * 1e-9;
}

std::string permutation(const Scratch& scratch, const std::string& shape, const char* size) {
  std::string path = fmt::format("{}/{}.ini", scratch.path, size);
  std::ofstream(path) << "[topology]\n"
                      << shape << "rate = 100G\n[load p]\npattern = permutation\nsize = " << size
                      << "\n";
  return path;
}

}  // namespace

void bench_scale(Table& table) {
  Scratch scratch;
  const std::string large = permutation(scratch, "kind = fat-tree\nk = 16\n", "4M");
  const std::string small =
      permutation(scratch, "kind = leaf-spine\nhosts = 32\nleaves = 4\nspines = 8\n", "128M");
  Rounds rounds =
      interleave(kRounds, {[&] { return ns_per_hop(large); }, [&] { return ns_per_hop(small); }});
  const double ratio = rounds.ratio(0, 1);
  Row row{"CPU per packet-hop, permutation of 1,024 hosts", fmt::format("{:.0f} ns", rounds[0]),
          fmt::format("{:.0f} ns, of 32 hosts", rounds[1]), fmt::format("{:.2f}", ratio), ""};
  table.push_back(judged(row, ratio, Bound::kAtMost, 2, ""));
  Rounds threads = interleave(
      kRounds, {[&] { return seconds("--threads 2 " + large); }, [&] { return seconds(large); }});
  const double share = threads.ratio(0, 1);
  Row faster{"its time on two threads", fmt::format("{:.2f} s", threads[0]),
             fmt::format("{:.2f} s, of one", threads[1]), fmt::format("{:.2f}", share), ""};
  table.push_back(judged(faster, share, Bound::kAtMost, 0.7, ""));
}

}  // namespace rocefs::bench
