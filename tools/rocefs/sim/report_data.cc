#include "tools/rocefs/sim/report_data.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "core/base/result.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "tools/picture/recording.h"
#include "tools/rocefs/sim/markup.h"

namespace rocefs {
namespace {

// Most points of all curves over time: a page of a few MiB.
constexpr size_t kAllPoints = 200'000, kMinPoints = 200, kMaxPoints = 4000;
constexpr size_t kCdfCurvePoints = 400;
// Octets of all recordings in the page, and of a file that is read for it.
constexpr size_t kAllRecordings = 8 << 20, kMaxRecordingFile = 256 << 20;

// Six digits: enough for a plot, and short.
double short_number(double value) {
  return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}

using Curve = std::vector<std::pair<double, std::optional<double>>>;

// Keeps the lowest and the highest point of each of `most / 2` parts, so that no peak is lost; a
// gap of a part in which nothing is known.
Curve thinned(const Curve& points, size_t most) {
  if (points.size() <= most) return points;
  Curve kept;
  size_t parts = most / 2;
  for (size_t part = 0; part < parts; ++part) {
    const auto from = points.begin() + static_cast<long>(points.size() * part / parts);
    const auto to = points.begin() + static_cast<long>(points.size() * (part + 1) / parts);
    auto low = to, high = to;
    for (auto point = from; point != to; ++point) {
      if (!point->second) continue;
      if (low == to || *point->second < *low->second) low = point;
      if (high == to || *point->second > *high->second) high = point;
    }
    kept.push_back(low == to ? *from : *std::min(low, high));
    if (low != high) kept.push_back(*std::max(low, high));
  }
  return kept;
}

SummaryJson curve_json(const Curve& points) {
  SummaryJson json = SummaryJson::array();
  for (const auto& [x, y] : points) {
    json.push_back({short_number(x), y ? SummaryJson(short_number(*y)) : SummaryJson()});
  }
  return json;
}

// Content of a recording; EFBIG if it is too large for a report.
Result<std::string> recording_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return Error{errno, std::strerror(errno)};
  if (file.tellg() > static_cast<std::streamoff>(kMaxRecordingFile)) return Error{EFBIG, ""};
  std::string text(static_cast<size_t>(file.tellg()), '\0');
  if (!file.seekg(0).read(text.data(), static_cast<std::streamsize>(text.size()))) {
    return Error{EIO, "cannot be read"};
  }
  return text;
}

// Share of flows of all runs together, each run counting the same.
Curve pooled_cdf(const std::vector<const RunSummary*>& runs) {
  std::vector<std::pair<double, double>> steps;  // value, growth of the share
  for (const RunSummary* run : runs) {
    double before = 0;
    for (const auto& [value, share] : run->slowdown_cdf) {
      steps.emplace_back(value, (share - before) / static_cast<double>(runs.size()));
      before = share;
    }
  }
  std::sort(steps.begin(), steps.end());
  Curve curve;
  double share = 0, shown = -1;
  for (size_t i = 0; i < steps.size(); ++i) {
    share += steps[i].second;
    bool last = i + 1 == steps.size();
    if (!last && (steps[i + 1].first == steps[i].first || share - shown < 1.0 / kCdfCurvePoints)) {
      continue;
    }
    shown = share;
    curve.emplace_back(steps[i].first, last ? std::min(1.0, share + 1e-6) : share);
  }
  return curve;
}

class Data {
 public:
  explicit Data(const ReportInput& input, const std::vector<VariantMeans>& means)
      : input_(input), means_(means) {
    for (const RunSummary& run : input.runs) longest_ = std::max(longest_, run.virtual_time);
    take_recordings();
    std::tie(unit_ns_, unit_) = longest_ < 2 * kMillisecond ? std::pair(1e3, "us")
                                : longest_ < 2 * kSecond    ? std::pair(1e6, "ms")
                                                            : std::pair(1e9, "s");
  }

  std::string text() const {
    SummaryJson json = SummaryJson::object();
    json["longest"] = static_cast<double>(longest_) / unit_ns_;
    json["unit"] = unit_;
    json["variants"] = SummaryJson::array();
    for (const VariantMeans& means : means_) json["variants"].push_back(means.variant);
    json["cdf"] = cdfs();
    json["sizes"] = sizes();
    json["panels"] = panels();
    json["series"] = series();
    std::string text = json.dump(-1, ' ', false, SummaryJson::error_handler_t::replace);
    text.pop_back();
    text += ",\"networks\":[" + networks_ + "]}";
    // No tag and no comment may begin in the text of a script element.
    std::string safe;
    for (char c : text) {
      if (c == '<') {
        safe += "\\u003c";
      } else {
        safe += c;
      }
    }
    return safe;
  }

  std::vector<std::string> notes() && { return std::move(notes_); }
  bool has_network() const { return !networks_.empty(); }

 private:
  // Recordings that fit become JSON: they stand as text in that of data(). The report shows no
  // flows.
  void take_recordings() {
    size_t left = input_.recordings.size(), room = kAllRecordings;
    for (const ReportRecording& one : input_.recordings) {
      const size_t share = room / left--;
      Result<std::string> text = recording_text(one.path);
      if (!text) {
        notes_.push_back(text.error().code == EFBIG
                             ? too_large(one)
                             : fmt::format("{}: {}.", escaped(one.name), text.error().reason));
        continue;
      }
      std::optional<Recording> recording = Recording::parse(*text);
      if (!recording || recording->messages.empty() || !recording->drop_flows()) {
        notes_.push_back(fmt::format("{} is no whole recording.", escaped(one.name)));
        continue;
      }
      const size_t looks = recording->messages.size();
      if (!recording->shorten(share)) {
        notes_.push_back(too_large(one));
        continue;
      }
      room -= recording->size();
      if (recording->messages.size() < looks) {
        notes_.push_back(fmt::format("Of the {} looks in {}, {} are shown here.", looks,
                                     escaped(one.name), recording->messages.size()));
      }
      if (!networks_.empty()) networks_ += ',';
      networks_ += fmt::format("{{\"name\":{},\"shape\":{},\"messages\":[{}]}}",
                               SummaryJson(one.variant).dump(), recording->shape,
                               fmt::join(recording->messages, ","));
    }
  }
  static std::string too_large(const ReportRecording& one) {
    return fmt::format(
        "{0} is too large for this page: <code>rocefs view --replay {0}</code> plays it.",
        escaped(one.name));
  }

  SummaryJson cdfs() const {
    SummaryJson json = SummaryJson::array();
    for (const VariantMeans& means : means_) {
      std::vector<const RunSummary*> runs;
      for (const RunSummary& run : input_.runs) {
        // Partial runs are shown if there are no others.
        bool fits = means.complete == 0 || !run.partial();
        if (run.variant == means.variant && fits && !run.slowdown_cdf.empty()) runs.push_back(&run);
      }
      if (runs.empty()) continue;
      json.push_back({{"variant", means.variant}, {"points", curve_json(pooled_cdf(runs))}});
    }
    return json;
  }

  SummaryJson sizes() const {
    SummaryJson json = SummaryJson::array();
    for (const VariantMeans& means : means_) {
      SummaryJson rows = SummaryJson::array();
      for (const SizeMeans& size : means.sizes) {
        if (size.size == 0) continue;
        SummaryJson row = {{"size", size.size}};
        for (size_t i : {1u, 3u}) {  // p50, p99
          const Mean& figure = size.slowdown[i];
          row[kFigureNames[i]] = short_number(figure.value);
          if (figure.half_width) {
            row[std::string(kFigureNames[i]) + "_ci"] = short_number(*figure.half_width);
          }
        }
        rows.push_back(std::move(row));
      }
      json.push_back({{"variant", means.variant}, {"rows", std::move(rows)}});
    }
    return json;
  }

  // Panels of [plot], else one for each sample.
  SummaryJson panels() const {
    const Scenario& scenario = input_.config.scenario;
    SummaryJson json = SummaryJson::array();
    auto add = [&](const std::string& axis, const std::vector<std::string>& names) {
      json.push_back({{"axis", axis}, {"samples", names}});
    };
    for (const Scenario::Line& line : scenario.panels) {
      std::vector<std::string> names;
      for (std::string_view name : split(line.value, " \t")) names.emplace_back(name);
      add(line.key, names);
    }
    for (const Scenario::Line& line : scenario.samples) {
      if (scenario.panels.empty()) add(line.key, {line.key});
    }
    return json;
  }

  SummaryJson series() const {
    const auto& names = input_.config.scenario.samples;
    size_t curves = std::max<size_t>(names.size() * input_.series.size(), 1);
    size_t most = std::clamp(kAllPoints / curves, kMinPoints, kMaxPoints);
    SummaryJson json = SummaryJson::array();
    for (const ReportSeries& one : input_.series) {
      SummaryJson samples = SummaryJson::object();
      for (size_t column = 0; column < names.size(); ++column) {
        Curve curve;
        for (const Sample& sample : one.samples) {
          if (column >= sample.values.size()) continue;
          curve.emplace_back(static_cast<double>(sample.at) / unit_ns_, sample.values[column]);
        }
        samples[names[column].key] = curve_json(thinned(curve, most));
      }
      json.push_back({{"variant", one.variant}, {"samples", std::move(samples)}});
    }
    return json;
  }

  const ReportInput& input_;
  const std::vector<VariantMeans>& means_;
  TimeNs longest_ = 0;
  double unit_ns_ = 1;
  const char* unit_ = "";
  std::string networks_;            // elements of a JSON array
  std::vector<std::string> notes_;  // about recordings
};

}  // namespace

ReportData report_data(const ReportInput& input, const std::vector<VariantMeans>& means) {
  Data data(input, means);
  std::string json = data.text();
  const bool has_network = data.has_network();
  return {std::move(json), std::move(data).notes(), has_network};
}

std::vector<Sample> read_series(const std::string& path) {
  std::vector<Sample> samples;
  std::ifstream file(path);
  std::string line;
  for (int number = 0; std::getline(file, line); ++number) {
    size_t comma = line.find(',');
    if (number < 2 || comma == line.npos) continue;
    char* at = nullptr;
    Sample sample{std::strtoll(line.c_str() + comma + 1, &at, 10), {}};
    while (*at == ',') {
      char* end = nullptr;
      double value = std::strtod(++at, &end);
      sample.values.push_back(end == at ? std::nullopt : std::optional(value));
      at = end;
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace rocefs
