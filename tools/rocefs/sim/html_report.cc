#include "tools/rocefs/sim/html_report.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "core/base/text.h"
#include "core/base/units.h"
#include "tools/page/bundle.h"
#include "tools/page/page.h"
#include "tools/picture/recording.h"
#include "tools/rocefs/sim/text_table.h"

namespace rocefs {
namespace {

// Most points of all curves over time: a page of a few MiB.
constexpr size_t kAllPoints = 200'000, kMinPoints = 200, kMaxPoints = 4000;
constexpr size_t kCdfCurvePoints = 400;
// Octets of all recordings in the page, and of a file that is read for it.
constexpr size_t kAllRecordings = 8 << 20, kMaxRecordingFile = 256 << 20;

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// Six digits: enough for a plot, and short.
double short_number(double value) {
  return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}

using Curve = std::vector<std::pair<double, std::optional<double>>>;

// Keeps the lowest and the highest point of each of `most / 2` parts, so that no peak is lost.
Curve thinned(const Curve& points, size_t most) {
  if (points.size() <= most) return points;
  Curve kept;
  size_t parts = most / 2;
  for (size_t part = 0; part < parts; ++part) {
    auto from = points.begin() + static_cast<long>(points.size() * part / parts);
    auto to = points.begin() + static_cast<long>(points.size() * (part + 1) / parts);
    auto [low, high] = std::minmax_element(
        from, to, [](const auto& a, const auto& b) { return a.second < b.second; });
    kept.push_back(*std::min(low, high));
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

// Content of a recording; nothing if the file is not there, or too large.
std::optional<std::string> recording_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file || file.tellg() > static_cast<std::streamoff>(kMaxRecordingFile)) return std::nullopt;
  std::string text(static_cast<size_t>(file.tellg()), '\0');
  file.seekg(0).read(text.data(), static_cast<std::streamsize>(text.size()));
  return file ? std::optional(std::move(text)) : std::nullopt;
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

class Page {
 public:
  explicit Page(const HtmlReport& report) : report_(report), means_(means_of(report.runs)) {
    for (const RunSummary& run : report.runs) longest_ = std::max(longest_, run.virtual_time);
    take_recordings();
    std::tie(unit_ns_, unit_) = longest_ < 2 * kMillisecond ? std::pair(1e3, "us")
                                : longest_ < 2 * kSecond    ? std::pair(1e6, "ms")
                                                            : std::pair(1e9, "s");
  }

  std::string text() const {
    std::string text = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
        "'unsafe-inline'; script-src 'unsafe-inline'\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n",
        escaped(report_.title), page_file("/drawing.css")->content,
        page_file("/report.css")->content);
    text += fmt::format("<h1>{}</h1>\n<p class=\"faint\">{}</p>\n", escaped(report_.title),
                        escaped(report_.origin));
    text += partial() + "<div class=\"legend\" id=\"legend\"></div>\n";
    text +=
        "<noscript><p class=\"warn\">The curves need JavaScript; the tables do "
        "not.</p></noscript>\n";
    text += flows() + over_time() + network() + runs() + queues() + notes();
    text += fmt::format("<h2>{}</h2>\n<pre>{}</pre>\n", escaped(file_name()),
                        escaped(report_.config.text));
    return text + fmt::format(
                      "<script type=\"application/json\" id=\"data\">{}</script>\n"
                      "<script>{}</script>\n</body>\n</html>\n",
                      data(), bundle("/report.js"));
  }

 private:
  std::string file_name() const {
    return report_.config.name.substr(report_.config.name.rfind('/') + 1);
  }
  static std::string name_of(const RunSummary& run) {
    std::string seed = fmt::format("seed {}", run.seed);
    return run.variant.empty() ? seed : run.variant + ", " + seed;
  }

  std::string partial() const {
    std::string text;
    for (const RunSummary& run : report_.runs) {
      if (!run.partial()) continue;
      text += fmt::format("<p>Partial: {}: {}</p>\n", escaped(name_of(run)), escaped(run.reason));
    }
    for (const std::string& name : report_.missing) {
      text += fmt::format("<p>Missing: {}</p>\n", escaped(name));
    }
    return text.empty() ? text : "<div class=\"warn\">\n" + text + "</div>\n";
  }

  std::string flows() const {
    std::string text = "<h2>Flows</h2>\n<div class=\"figures\" id=\"flows\"></div>\n";
    text += figures("Slowdown (FCT / ideal FCT)", &SizeMeans::slowdown,
                    [](double value) { return fmt::format("{:.2f}", value); });
    return text + figures("FCT", &SizeMeans::fct_ns, rounded_time);
  }

  template <class Text>
  std::string figures(const char* caption, std::vector<Mean> SizeMeans::*member,
                      Text text_of) const {
    bool several = std::any_of(means_.begin(), means_.end(),
                               [](const VariantMeans& means) { return means.complete > 1; });
    std::string text = fmt::format(
        "<div class=\"scroll\"><table><caption>{}{}</caption>\n<tr><th>Variant</th><th>Size up "
        "to</th><th>Flows a run</th>",
        caption, several ? ": mean over the seeds, ± half of its 95 % confidence interval" : "");
    for (const char* name : kFigureNames) text += fmt::format("<th>{}</th>", name);
    text += "</tr>\n";
    for (const VariantMeans& variant : means_) {
      for (const SizeMeans& size : variant.sizes) {
        if (size.size == 0 && variant.sizes.size() == 2) continue;  // one size is all
        text += fmt::format("<tr><td>{}</td><td>{}</td><td>{:.6g}</td>", escaped(variant.variant),
                            size.size ? format_size(size.size) : "all", size.flows.value);
        for (const Mean& figure : size.*member) {
          text += "<td>" + (figure.count ? text_of(figure.value) : "–");
          if (figure.half_width) text += " <small>±" + text_of(*figure.half_width) + "</small>";
          text += "</td>";
        }
        text += "</tr>\n";
      }
    }
    return text + "</table></div>\n";
  }

  std::string over_time() const {
    if (report_.config.scenario.samples.empty()) return {};
    std::string text =
        "<h2>Over time</h2>\n<p class=\"faint\">Drag over a plot to zoom all of them, double-click "
        "to see all. Curves of many samples have the lowest and the highest of neighbours";
    bool several = std::any_of(report_.runs.begin(), report_.runs.end(),
                               [&](const auto& run) { return run.seed != report_.runs[0].seed; });
    if (several) text += ", of the first seed";
    return text +
           "; series.csv has all.</p>\n<p><button id=\"zoom-in\">Zoom in</button> <button "
           "id=\"zoom-out\">Zoom out</button> <button id=\"zoom-all\">Whole run</button></p>\n"
           "<div class=\"figures\" id=\"series\"></div>\n";
  }

  // The picture of the network over time.
  std::string network() const {
    if (report_.recordings.empty()) return {};
    std::string text = "<h2>The network over time</h2>\n";
    if (!networks_.empty()) {
      text +=
          "<p class=\"faint\">A cable's colour is the load since the moment before; the slider "
          "chooses the moment, a click a switch or a device.</p>\n"
          "<div class=\"network\" id=\"network\"></div>\n";
    }
    for (const std::string& file : too_large_) {
      text += fmt::format(
          "<p class=\"faint\">{0} is too large for this page: <code>rocefs view --replay "
          "{0}</code> plays it.</p>\n",
          escaped(file));
    }
    return text;
  }

  // Recordings that fit become JSON: they stand as text in that of data().
  void take_recordings() {
    for (const ReportRecording& one : report_.recordings) {
      std::optional<std::string> text = recording_text(one.path);
      std::optional<Recording> recording = text ? Recording::parse(*text) : std::nullopt;
      if (!recording || !recording->shorten(kAllRecordings / report_.recordings.size())) {
        too_large_.push_back(one.path.substr(one.path.rfind('/') + 1));
        continue;
      }
      if (!networks_.empty()) networks_ += ',';
      networks_ += fmt::format("{{\"name\":{},\"shape\":{},\"messages\":[{}]}}",
                               SummaryJson(one.variant).dump(), recording->shape,
                               fmt::join(recording->messages, ","));
    }
  }

  std::string runs() const {
    std::string text =
        "<h2>Runs</h2>\n<div class=\"scroll\"><table>\n<tr><th>Variant</th><th>Seed</th><th>End"
        "</th><th>Virtual time</th><th>Flows</th><th>Retransmitted</th><th>CNPs</th><th>Marked "
        "CE</th><th>PAUSE frames</th><th>Time paused</th><th>Lost</th><th>Dropped</th><th>Longest "
        "queue (octets)</th><th>Most from one port (octets)</th><th>Busiest "
        "link</th><th>Packet-hops</th><th>Events</th></tr>\n";
    for (const RunSummary& run : report_.runs) {
      std::string flows;
      for (const auto& [state, count] : run.states) {
        flows += fmt::format("{}{} {}", flows.empty() ? "" : ", ", count, state);
      }
      auto number = [&](const char* key) { return run.rest.value(key, uint64_t{0}); };
      SummaryJson drops = run.rest.value("drops", SummaryJson::object());
      text += fmt::format(
          "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
          "<td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
          "<td>{:.1f} %</td><td>{}</td><td>{}</td></tr>\n",
          escaped(run.variant), run.seed, escaped(run.end),
          rounded_time(static_cast<double>(run.virtual_time)), escaped(flows),
          number("retransmitted"), number("cnps"), number("ce_marked"), number("pause_frames"),
          rounded_time(static_cast<double>(number("paused_ns"))), drops.value("lost", uint64_t{0}),
          drops.value("dropped", uint64_t{0}), number("queue_peak"), number("ingress_peak"),
          100 * run.rest.value("highest_link_utilization", 0.0), number("packet_hops"),
          number("events"));
    }
    return text + "</table></div>\n";
  }

  // Egress queues of switches; nothing if no run has measured them.
  std::string queues() const {
    std::string text;
    for (const RunSummary& run : report_.runs) {
      SummaryJson all = run.rest.value("queues", SummaryJson::object());
      for (const char* which : {"octets", "worst_octets"}) {
        if (!all.contains(which)) continue;
        bool worst = all.contains("worst") && which == std::string_view("worst_octets");
        text += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td>", escaped(run.variant), run.seed,
                            worst ? escaped(all["worst"].get<std::string>())
                                  : fmt::format("all {}", all.value("used", uint64_t{0})));
        for (const char* name : kFigureNames) {
          text += fmt::format("<td>{:.0f}</td>", all[which].value(name, 0.0));
        }
        text += "</tr>\n";
      }
    }
    if (text.empty()) return text;
    std::string head =
        "<h2>Queues</h2>\n<div class=\"scroll\"><table><caption>Octets in the egress queues of "
        "switches, weighted by time: in all that were used, and in the one with the highest 99th "
        "percentile</caption>\n<tr><th>Variant</th><th>Seed</th><th>Queues</th>";
    for (const char* name : kFigureNames) head += fmt::format("<th>{}</th>", name);
    return head + "</tr>\n" + text + "</table></div>\n";
  }

  // Warnings in dmesg, and faults.
  std::string notes() const {
    std::string text;
    for (const RunSummary& run : report_.runs) {
      for (const SummaryJson& line : run.rest.value("warnings", SummaryJson::array())) {
        text += escaped(name_of(run) + ": " + line.get<std::string>()) + "\n";
      }
    }
    if (!text.empty()) text = "<h2>Warnings</h2>\n<pre>" + text + "</pre>\n";
    return text + logs();
  }

  // Lines of dmesg of runs that failed.
  std::string logs() const {
    std::string text;
    for (const RunSummary& run : report_.runs) {
      std::string lines;
      for (const SummaryJson& line : run.rest.value("log", SummaryJson::array())) {
        lines += escaped(line.get<std::string>()) + "\n";
      }
      if (lines.empty()) continue;
      text += fmt::format("<h2>Log of {}</h2>\n<pre>{}</pre>\n", escaped(name_of(run)), lines);
    }
    return text;
  }

  std::string data() const {
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

  SummaryJson cdfs() const {
    SummaryJson json = SummaryJson::array();
    for (const VariantMeans& means : means_) {
      std::vector<const RunSummary*> runs;
      for (const RunSummary& run : report_.runs) {
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
    const Scenario& scenario = report_.config.scenario;
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
    const auto& names = report_.config.scenario.samples;
    size_t curves = std::max<size_t>(names.size() * report_.series.size(), 1);
    size_t most = std::clamp(kAllPoints / curves, kMinPoints, kMaxPoints);
    SummaryJson json = SummaryJson::array();
    for (const ReportSeries& one : report_.series) {
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

  const HtmlReport& report_;
  const std::vector<VariantMeans> means_;
  TimeNs longest_ = 0;
  double unit_ns_ = 1;
  const char* unit_ = "";
  std::string networks_;                // elements of a JSON array
  std::vector<std::string> too_large_;  // names of files
};

}  // namespace

std::string HtmlReport::text() const {
  return Page(*this).text();
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
