#include "tools/rocefs/sim/html_report.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/base/units.h"
#include "tools/page/bundle.h"
#include "tools/page/page.h"
#include "tools/rocefs/sim/markup.h"
#include "tools/rocefs/sim/report_data.h"
#include "tools/rocefs/sim/text_table.h"

namespace rocefs {
namespace {

// The rules of the dark theme in a style, for readers whose browser runs no scripts.
std::string dark_rules(std::string_view style) {
  constexpr std::string_view kDark = "[data-theme=dark] {";
  std::string rules;
  for (size_t at = 0; (at = style.find(kDark, at)) != style.npos;) {
    at += kDark.size();
    rules += ":root {" + std::string(style.substr(at, style.find('}', at) - at)) + "}\n";
  }
  return "@media (prefers-color-scheme: dark) { " + rules + "}\n";
}

constexpr const char* kOverSeeds = ": mean over the seeds, ± half of its 95 % confidence interval";

class Page {
 public:
  explicit Page(const HtmlReport& report)
      : report_(report),
        means_(means_of(report.input.runs, PartialRuns::kIfAlone)),
        data_(report_data(report.input, means_)) {}

  std::string text() const {
    const std::string_view drawing = page_file("/drawing.css")->content;
    const std::string_view own = page_file("/report.css")->content;
    std::string text = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
        "'unsafe-inline'; script-src 'unsafe-inline'\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>{0}</title>\n<style>{1}{2}</style>\n"
        "<noscript><style>{3}{4}.network {{ display: none; }}</style></noscript>\n"
        "</head>\n<body>\n",
        escaped(report_.title), drawing, own, dark_rules(drawing), dark_rules(own));
    text += fmt::format("<h1>{}</h1>\n<p class=\"faint\">{}</p>\n", escaped(report_.title),
                        escaped(report_.origin));
    text += partial() + "<div class=\"legend\" id=\"legend\"></div>\n";
    text +=
        "<noscript><p class=\"warn\">The curves need JavaScript; the tables do "
        "not.</p></noscript>\n";
    text += flows() + rounds() + over_time() + network() + totals() + runs() + queues() + notes();
    text += fmt::format("<h2>{}</h2>\n<pre>{}</pre>\n", escaped(file_name()),
                        escaped(report_.input.config.text));
    return text + fmt::format(
                      "<script type=\"application/json\" id=\"data\">{}</script>\n"
                      "<script>{}</script>\n</body>\n</html>\n",
                      data_.json, bundle("/report.js"));
  }

 private:
  std::string file_name() const {
    return report_.input.config.name.substr(report_.input.config.name.rfind('/') + 1);
  }
  static std::string name_of(const RunSummary& run) {
    std::string seed = fmt::format("seed {}", run.seed);
    return run.variant.empty() ? seed : run.variant + ", " + seed;
  }

  bool several_seeds() const {
    return std::any_of(means_.begin(), means_.end(),
                       [](const VariantMeans& means) { return means.counted > 1; });
  }

  std::string partial() const {
    std::string text;
    for (const RunSummary& run : report_.input.runs) {
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
    std::string text = fmt::format(
        "<div class=\"scroll\"><table><caption>{}{}</caption>\n<tr><th>Variant</th><th>Size up "
        "to</th><th>Flows a run</th>",
        caption, several_seeds() ? kOverSeeds : "");
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

  // Rounds of the loads that are collectives.
  std::string rounds() const {
    const std::vector<TableRow> rows = rounds_of(means_);
    if (rows.empty()) return {};
    std::string text = fmt::format(
        "<h2>Rounds</h2>\n<div class=\"scroll\"><table><caption>Completion time of the rounds of "
        "collectives{}</caption>\n",
        several_seeds() ? kOverSeeds : "");
    for (const TableRow& row : rows) {
      const char* kind = &row == &rows[0] ? "th" : "td";
      text += "<tr>";
      for (const std::string& cell : row)
        text += fmt::format("<{0}>{1}</{0}>", kind, escaped(cell));
      text += "</tr>\n";
    }
    return text + "</table></div>\n";
  }

  std::string over_time() const {
    if (report_.input.config.scenario.samples.empty()) return {};
    std::string text =
        "<h2>Over time</h2>\n<p class=\"faint\">Drag over a plot to zoom all of them, double-click "
        "to see all. Curves of many samples have the lowest and the highest of neighbours";
    std::vector<std::string> files;  // in a sweep they name the variant and the seed
    for (const ReportSeries& one : report_.input.series) {
      if (files.empty() || files.back() != one.name) files.push_back(one.name);
    }
    if (!files.empty()) {
      text += fmt::format("; {} {} all", escaped(fmt::format("{}", fmt::join(files, ", "))),
                          files.size() == 1 ? "has" : "have");
    }
    return text +
           ".</p>\n<p><button id=\"zoom-in\">Zoom in</button> <button "
           "id=\"zoom-out\">Zoom out</button> <button id=\"zoom-all\">Whole run</button></p>\n"
           "<div class=\"figures\" id=\"series\"></div>\n";
  }

  // The picture of the network over time.
  std::string network() const {
    if (report_.input.recordings.empty()) return {};
    std::string text = "<h2>The network over time</h2>\n";
    if (data_.has_network) {
      text +=
          "<p class=\"faint\">A cable's colour is the load since the moment before; the slider "
          "chooses the moment, a click a switch or a device.</p>\n"
          "<div class=\"network\" id=\"network\"></div>\n";
    }
    for (const std::string& note : data_.notes) {
      text += fmt::format("<p class=\"faint\">{}</p>\n", note);
    }
    return text;
  }

  // Totals of a run, as means over the seeds; nothing of a single seed.
  std::string totals() const {
    if (!several_seeds()) return {};
    std::string text =
        "<h2>Totals of a run</h2>\n<div class=\"scroll\"><table><caption>Mean over the seeds, ± "
        "half of "
        "its 95 % confidence interval; queues in "
        "octets</caption>\n<tr><th>Variant</th><th>Runs</th>";
    for (const TotalColumn& column : kTotalColumns) {
      text += fmt::format("<th>{}</th>", column.heading);
    }
    text += "</tr>\n";
    for (const VariantMeans& means : means_) {
      text += fmt::format("<tr><td>{}</td><td>{}</td>", escaped(means.variant), means.counted);
      for (const TotalColumn& column : kTotalColumns) {
        text += fmt::format("<td>{}</td>", total_text(means, column));
      }
      text += "</tr>\n";
    }
    return text + "</table></div>\n";
  }

  std::string runs() const {
    std::string text =
        "<h2>Runs</h2>\n<div class=\"scroll\"><table>\n<tr><th>Variant</th><th>Seed</th><th>End"
        "</th><th>Virtual time</th><th>Flows</th><th>Retransmitted</th><th>CNPs</th><th>Marked "
        "CE</th><th>PAUSE frames</th><th>Time paused</th><th>Lost</th><th>Dropped</th><th>Longest "
        "queue (octets)</th><th>Most from one port (octets)</th><th>Busiest "
        "link</th><th>Packet-hops</th><th>Events</th></tr>\n";
    for (const RunSummary& run : report_.input.runs) {
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
    for (const RunSummary& run : report_.input.runs) {
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
    for (const RunSummary& run : report_.input.runs) {
      for (const SummaryJson& line : run.rest.value("warnings", SummaryJson::array())) {
        text += escaped(name_of(run) + ": " + line.get<std::string>()) + "\n";
      }
    }
    if (!text.empty()) text = "<h2>Warnings</h2>\n<pre>" + text + "</pre>\n";
    return faults() + text + logs();
  }

  // Faults of [inject], and how often they fired in each run.
  std::string faults() const {
    std::string text;
    for (const RunSummary& run : report_.input.runs) {
      const SummaryJson fired = run.rest.value("faults", SummaryJson::object());
      for (const Scenario::Line& fault : report_.input.config.scenario.faults) {
        if (!fired.contains(fault.key)) continue;
        text += escaped(fmt::format("{}: fault {} fired {}: {}\n", name_of(run), fault.key,
                                    fired[fault.key].get<uint64_t>(), fault.value));
      }
    }
    return text.empty() ? text : "<h2>Faults</h2>\n<pre>" + text + "</pre>\n";
  }

  // Lines of dmesg of runs that failed.
  std::string logs() const {
    std::string text;
    for (const RunSummary& run : report_.input.runs) {
      std::string lines;
      for (const SummaryJson& line : run.rest.value("log", SummaryJson::array())) {
        lines += escaped(line.get<std::string>()) + "\n";
      }
      if (lines.empty()) continue;
      text += fmt::format("<h2>Log of {}</h2>\n<pre>{}</pre>\n", escaped(name_of(run)), lines);
    }
    return text;
  }

  const HtmlReport& report_;
  const std::vector<VariantMeans> means_;
  const ReportData data_;
};

}  // namespace

std::string HtmlReport::text() const {
  return Page(*this).text();
}

}  // namespace rocefs
