// Cost of a packet in a large fabric: a permutation over the 1,024 hosts of a fat-tree by `rocefs
// sim`, against one over 32 hosts, which fits the caches. The start of the process does not count.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>

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
}

}  // namespace rocefs::bench
