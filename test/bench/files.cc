// A knob's open + read to the end + close, as cat does it, compared with real sysfs, and with a
// bare FUSE server.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "test/bench/bare_fuse.h"
#include "test/bench/bench.h"
#include "test/bench/benches.h"
#include "test/bench/mount.h"

namespace rocefs::bench {
namespace {

// A setting of a NIC, reached through its class as scripts do; and one seven directories deep,
// without a link on the way.
constexpr const char* kRealClass = "/sys/class/net/lo/mtu";
constexpr const char* kClass = "class/infiniband/mb_0/node_desc";
constexpr const char* kRealPlain = "/sys/devices/virtual/net/lo/queues/rx-0/rps_cpus";
constexpr const char* kPlain = "kernel/debug/rocefs/links/mb_0-sw_0/delay";

bool read_once(const char* path) {
  char text[4096];
  int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t got;
  while ((got = ::read(fd, text, sizeof text)) > 0) {
  }
  return ::close(fd) == 0 && got == 0;
}

// Microseconds of one turn; the first one, which fills the kernel's caches, is not counted.
double turn_us(const std::string& path, int turns) {
  if (!read_once(path.c_str())) fmt::print(stderr, "cannot read {}\n", path);
  return wall_ns([&] {
           for (int i = 0; i < turns; ++i) read_once(path.c_str());
         }) /
         turns / 1000;
}

}  // namespace

void bench_files(Table& table) {
  BareFuse bare(0), far(1);
  Mount same(0), other(1), anywhere;
  if (!bare.up() || !far.up() || !same.up() || !other.up() || !anywhere.up()) return;
  pin(0);
  constexpr int kReal = 4000, kFuse = 700;
  Rounds us = interleave(
      41,
      {[] { return turn_us(kRealClass, kReal); }, [&] { return turn_us(same.at(kClass), kFuse); },
       [&] { return turn_us(other.at(kClass), kFuse); }, [] { return turn_us(kRealPlain, kReal); },
       [&] { return turn_us(same.at(kPlain), kFuse); },
       [&] { return turn_us(other.at(kPlain), kFuse); },
       [&] { return turn_us(bare.file(), kFuse); }, [&] { return turn_us(far.file(), kFuse); },
       [&] {
         unpin();
         double turn = turn_us(anywhere.at(kPlain), kFuse);
         pin(0);
         return turn;
       }});
  auto row = [&](const char* figure, size_t own, size_t beside, const char* what) {
    return Row{figure, fmt::format("{:.2f} us", us[own]),
               fmt::format("{:.2f} us {}", us[beside], what),
               fmt::format("{:.2f}", us.ratio(own, beside)), ""};
  };
  table.push_back(judged(row("open+read+close, class/infiniband, one CPU", 1, 0, "sysfs"),
                         us.ratio(1, 0), Bound::kAtMost, 5.5, ""));
  table.push_back(row("  two CPUs", 2, 0, "sysfs"));
  table.push_back(row("open+read+close, links/, one CPU", 4, 3, "sysfs"));
  table.push_back(row("  two CPUs", 5, 3, "sysfs"));
  table.push_back(row("  where the kernel puts them", 8, 3, "sysfs"));
  table.push_back(row("  a bare FUSE server, one CPU", 6, 3, "sysfs"));
  table.push_back(judged(row("  beside that bare server", 4, 6, "bare FUSE"), us.ratio(4, 6),
                         Bound::kAtMost, 1.2, ""));
  table.push_back(row("  a bare FUSE server, two CPUs", 7, 3, "sysfs"));
  table.push_back(judged(row("  two CPUs, beside that bare server", 5, 7, "bare FUSE"),
                         us.ratio(5, 7), Bound::kAtMost, 1.2, ""));
}

}  // namespace rocefs::bench
