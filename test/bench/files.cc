// A knob's open + read to the end + close, as cat does it, against the same on real sysfs.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "test/bench/bench.h"
#include "test/bench/benches.h"
#include "test/bench/mount.h"

namespace rocefs::bench {
namespace {

// Both are words that a driver prints, five directories deep, without a link on the way.
constexpr const char* kReal = "/sys/devices/virtual/net/lo/mtu";
constexpr const char* kKnob = "kernel/debug/rocefs/links/mb_0-sw_0/delay";

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
  Mount same(0), other(1);
  if (!same.up() || !other.up()) return;
  pin(0);
  std::vector<double> us = interleave(
      25, {[] { return turn_us(kReal, 10'000); }, [&] { return turn_us(same.at(kKnob), 1'000); },
           [&] { return turn_us(other.at(kKnob), 1'000); }});
  std::string reference = fmt::format("{:.2f} us real sysfs", us[0]);
  Row row{"open + read to the end + close, one CPU", fmt::format("{:.2f} us", us[1]), reference,
          fmt::format("{:.2f}", us[1] / us[0]), ""};
  table.push_back(judged(row, us[1] / us[0], Bound::kAtMost, 5.5, ""));
  table.push_back({"open + read to the end + close, two CPUs", fmt::format("{:.2f} us", us[2]),
                   reference, fmt::format("{:.2f}", us[2] / us[0]), ""});
}

}  // namespace rocefs::bench
