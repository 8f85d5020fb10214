#include "rdma/workload/size_distribution.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "core/base/text.h"
#include "rdma/workload/file_text.h"

namespace rocefs {
namespace {

struct NamedDistribution {
  std::string_view name, lines;
};

// As they were published with HPCC (Li et al., SIGCOMM 2019): web search by Alizadeh et al.
// (DCTCP, SIGCOMM 2010), Hadoop by Roy et al. (SIGCOMM 2015), storage of Alibaba (2019).
constexpr NamedDistribution kDistributions[] = {
    {"websearch",
     "0 0\n10000 15\n20000 20\n30000 30\n50000 40\n80000 53\n200000 60\n1000000 70\n2000000 80\n"
     "5000000 90\n10000000 97\n30000000 100\n"},
    {"fbhadoop",
     "0 0\n100 1\n200 2\n300 5\n350 15\n400 20\n500 30\n600 40\n700 50\n1000 60\n2000 67\n7000 70\n"
     "30000 72\n50000 82\n80000 87\n120000 90\n300000 95\n1000000 97.5\n2000000 99\n"
     "10000000 100\n"},
    {"alistorage",
     "0 0\n4000 22.93\n8000 69.21\n16000 80.61\n32000 90.47\n64000 93.53\n128000 96.77\n"
     "256000 97.53\n2000000 100\n"},
};

std::optional<double> finite_number(std::string_view text) {
  double value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool whole = code == std::errc() && end == text.data() + text.size() && std::isfinite(value);
  return whole ? std::optional(value) : std::nullopt;
}

}  // namespace

SizeDistribution SizeDistribution::fixed(uint64_t size) {
  return SizeDistribution({{static_cast<double>(size), 1}});
}

Result<SizeDistribution> SizeDistribution::named(std::string_view name) {
  for (const NamedDistribution& one : kDistributions) {
    if (one.name == name) return parse(one.lines);
  }
  return errorf(EINVAL, "no distribution {} (websearch, fbhadoop, alistorage, or a file)", name);
}

Result<SizeDistribution> SizeDistribution::parse(std::string_view text) {
  std::vector<Point> points;
  int number = 0;
  std::istringstream lines{std::string(without_byte_order_mark(text))};
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line.resize(std::min(line.find('#'), line.size()));
    std::vector<std::string_view> words = split(line, " \t\r");
    if (words.empty()) continue;
    std::optional<double> size = finite_number(words[0]), below = finite_number(words.back());
    if (words.size() != 2 || !size || !below) {
      return errorf(EINVAL, "line {}: SIZE PERCENT is wanted", number);
    }
    if (*size < 0 || *size > static_cast<double>(kMaxLoadFlow)) {
      return errorf(EINVAL, "line {}: a flow has 0 to {} octets", number, kMaxLoadFlow);
    }
    bool falls = !points.empty() && (*size < points.back().size || *below < points.back().below);
    if (falls || *below < 0) return errorf(EINVAL, "line {}: the numbers decrease", number);
    points.push_back({*size, *below});
  }
  if (points.empty()) return Error{EINVAL, "the distribution is empty"};
  const double all = points.back().below;
  if (all != 100 && all != 1) return Error{EINVAL, "the last percentage is not 100"};
  for (Point& point : points) point.below /= all;
  if (points.back().size < 1) return Error{EINVAL, "all flows are empty"};
  return SizeDistribution(std::move(points));
}

Result<SizeDistribution> SizeDistribution::read(const std::string& name,
                                                const std::string& directory) {
  if (Result<SizeDistribution> known = named(name); known) return known;
  std::string path = name.starts_with('/') ? name : directory + name;
  std::ifstream file(path);
  if (!file) {
    if (name.find_first_of("./") == name.npos) return named(name).error();
    return errorf(errno, "{}: {}", path, std::strerror(errno));
  }
  std::string text;
  char part[4096];
  while (file.read(part, sizeof part), file.gcount() > 0) {
    text.append(part, static_cast<size_t>(file.gcount()));
  }
  if (file.bad()) return errorf(EINVAL, "{}: it cannot be read, or is a directory", path);
  Result<SizeDistribution> read = parse(text);
  if (!read) return errorf(EINVAL, "{}: {}", path, read.error().reason);
  return read;
}

uint64_t SizeDistribution::at(double u) const {
  auto high =
      std::upper_bound(points_.begin(), points_.end(), u,
                       [](double value, const Point& point) { return value < point.below; });
  double size = 0;
  if (high == points_.begin() || high == points_.end()) {
    size = (high == points_.end() ? points_.back() : *high).size;
  } else {
    auto low = std::prev(high);
    size = low->size + (high->size - low->size) * (u - low->below) / (high->below - low->below);
  }
  return std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(size)));
}

double SizeDistribution::mean() const {
  double sum = points_.front().size * points_.front().below;
  for (size_t i = 1; i < points_.size(); ++i) {
    const Point &low = points_[i - 1], &high = points_[i];
    sum += (high.below - low.below) * (low.size + high.size) / 2;
  }
  return std::max(sum, 1.0);
}

}  // namespace rocefs
