// Plot: a column of panels for each variant, a row for each line of [plot], and a last row with the
// goodput of each flow. The panels of a row have one scale, to be compared. Variants that do not
// fit beside each other go on below, with rows of their own.
#include <algorithm>

#include "core/base/text.h"
#include "tools/rocefs/sim/report.h"

namespace rocefs {
namespace {

// Quotes text for gnuplot. Between its double quotes a backquote would run a command.
std::string quoted_text(std::string_view text, std::string_view second_line = {}) {
  std::string out = "\"";
  for (std::string_view line : {text, second_line}) {
    if (line.empty()) continue;
    if (out.size() > 1) out += "\\n";
    for (char c : line) {
      if (c == '"' || c == '\\' || c == '`') out += '\\';
      out += c;
    }
  }
  return out + "\"";
}

// Fraction of the screen.
double of(double pixels, size_t all) {
  return pixels / static_cast<double>(all);
}

struct TimeUnit {
  double ns;
  const char* name;
};
TimeUnit unit_for(TimeNs longest) {
  if (longest < 2 * kMicrosecond) return {1, "ns"};
  if (longest < 2 * kMillisecond) return {1e3, "us"};
  if (longest < 2 * kSecond) return {1e6, "ms"};
  return {1e9, "s"};
}

// One panel of [plot]: indices of its samples.
struct Panel {
  std::string axis;
  std::vector<size_t> samples;
  double highest = 0;
};

class Plot {
 public:
  explicit Plot(const Report& report) : report_(report) {
    for (const RunResult& run : report.runs) longest_ = std::max(longest_, run.end);
    unit_ = unit_for(longest_);
    add_panels();
    for (const RunResult& run : report_.runs) {
      for (const FlowResult& flow : run.flows) {
        best_ = std::max(best_, flow.number("goodput_bps") / 1e9);
      }
    }
  }

  std::string text() const {
    std::string text = fmt::format("# {}\n", report_.origin());
    for (size_t i = 0; i < report_.runs.size(); ++i) text += data(i);
    const size_t runs = report_.runs.size(), rows_of_band = panels_.size() + flows_shown();
    const size_t columns = std::max<size_t>(
        std::min(std::max(kColumns, quotient_up(runs * rows_of_band, kMostRows)), runs), 1);
    const size_t rows = quotient_up(runs, columns) * rows_of_band;
    const size_t gap = runs > columns ? 96 : 76;  // for titles within
    size_t width = std::max<size_t>(480 * columns, 800), height = 80 + (174 + gap) * rows;
    for (const char* terminal : {"svg", "pngcairo"}) {
      bool svg = terminal[0] == 's';
      text += fmt::format("set terminal {} noenhanced size {},{} font 'Helvetica,11'{}\n", terminal,
                          width, height, svg ? " background 'white'" : "");
      text += fmt::format("set output 'plot.{}'\n", svg ? "svg" : "png");
      text += fmt::format(
          "set multiplot layout {},{} title {} font 'Helvetica,12' margins screen "
          "{:.5f},{:.5f},{:.5f},{:.5f} spacing screen {:.5f},{:.5f}\n",
          rows, columns, quoted_text(report_.title(), report_.origin()), of(82, width),
          1 - of(25, width), of(58, height), 1 - of(86, height), of(98, width), of(gap, height));
      text += "set grid lc rgb '#dddddd'\nset border 3\nset tics nomirror\n";
      text += "set boxwidth 0.8\n";
      for (size_t first = 0; first < runs; first += columns) text += band(first, columns);
      text += "unset multiplot\nset output\n";
    }
    return text;
  }

 private:
  static constexpr size_t kColumns = 5;     // 2400 pixels, about a screen
  static constexpr size_t kMostRows = 120;  // 32480 pixels; cairo draws at most 32767
  static constexpr size_t quotient_up(size_t all, size_t each) { return (all + each - 1) / each; }

  bool flows_shown() const { return best_ > 0; }

  // The panels of as many variants as there are columns, from `first` on.
  std::string band(size_t first, size_t columns) const {
    std::string text;
    auto row = [&](auto&& plot) {
      for (size_t run = first; run < first + columns; ++run) {
        text += run < report_.runs.size() ? plot(run) : "set multiplot next\n";
      }
    };
    for (const Panel& panel : panels_) {
      row([&](size_t run) { return heading(run, &panel == &panels_[0]) + over_time(panel, run); });
    }
    if (flows_shown()) {
      row([&](size_t run) { return heading(run, panels_.empty()) + over_flows(run); });
    }
    return text;
  }

  void add_panels() {
    const Scenario& scenario = report_.config.scenario;
    for (const Scenario::Line& line : scenario.panels) {
      Panel panel{line.key, {}, 0};
      for (std::string_view name : split(line.value, " \t")) {
        auto it = std::find_if(scenario.samples.begin(), scenario.samples.end(),
                               [&](const Scenario::Line& sample) { return sample.key == name; });
        panel.samples.push_back(static_cast<size_t>(it - scenario.samples.begin()));
      }
      for (const RunResult& run : report_.runs) {
        for (const Sample& sample : run.samples) {
          for (size_t column : panel.samples) {
            panel.highest = std::max(panel.highest, sample.values[column].value_or(0));
          }
        }
      }
      panels_.push_back(std::move(panel));
    }
  }

  // Data blocks of a run: time with samples, and flows.
  std::string data(size_t index) const {
    const RunResult& run = report_.runs[index];
    std::string text = fmt::format("$series{} << EOD\n", index);
    for (const Sample& sample : run.samples) {
      text += fmt::format("{:.9g}", static_cast<double>(sample.at) / unit_.ns);
      for (const std::optional<double>& value : sample.values) {
        text += value ? fmt::format(" {:.6g}", *value) : " NaN";
      }
      text += "\n";
    }
    if (run.samples.empty()) text += "0\n";
    text += fmt::format("EOD\n$flows{} << EOD\n", index);
    for (size_t i = 0; i < run.flows.size(); ++i) {
      const FlowResult& flow = run.flows[i];
      text += fmt::format("{} {:.6g} \"{}\"\n", i + 1, flow.number("goodput_bps") / 1e9,
                          flow.spec.name);
    }
    return text + "EOD\n";
  }

  // Title above the first row.
  std::string heading(size_t index, bool first) const {
    const RunResult& run = report_.runs[index];
    if (!first) return "unset title\n";
    double slowdown = 0, done = 0;
    for (const FlowResult& flow : run.flows) {
      slowdown += flow.done() ? flow.slowdown() : 0;
      done += flow.done();
    }
    std::string what = run.variant;
    std::replace(what.begin(), what.end(), '_', ' ');
    if (done > 0) {
      what += fmt::format("{}FCT {:.2f} times the ideal on average", what.empty() ? "" : ": ",
                          slowdown / done);
    }
    return fmt::format("set title {}\n", quoted_text(what));
  }

  // One line is named by the axis; more than 8 do not fit into a key.
  static bool has_key(const Panel& panel) {
    return panel.samples.size() > 1 && panel.samples.size() <= 8;
  }

  std::string over_time(const Panel& panel, size_t run) const {
    std::string text =
        fmt::format("set ylabel {}\nset xlabel 'Time ({})'\n", quoted_text(panel.axis), unit_.name);
    text += fmt::format("set xrange [0:{:.6g}]\nset yrange [0:{:.6g}]\nset xtics auto norotate\n",
                        static_cast<double>(longest_) / unit_.ns,
                        panel.highest > 0 ? panel.highest * (has_key(panel) ? 1.4 : 1.12) : 1);
    text += has_key(panel) ? "set key top right horizontal maxrows 2 samplen 1.5 width -1\n"
                           : "unset key\n";
    std::string plots;
    for (size_t sample : panel.samples) {
      plots += fmt::format("{}$series{} using 1:{} with lines lw 1.5 title {}",
                           plots.empty() ? "plot " : ", ", run, sample + 2,
                           quoted_text(report_.config.scenario.samples[sample].key));
    }
    return text + plots + "\n";
  }

  std::string over_flows(size_t run) const {
    size_t flows = report_.runs[run].flows.size();
    std::string text = "set ylabel 'Goodput of each flow (Gb/s)'\nunset key\n";
    text += fmt::format("set xlabel 'Flow'\nset xrange [0.3:{}.7]\nset yrange [0:{:.6g}]\n", flows,
                        best_ * 1.12);
    text += flows > 6 ? "set xtics rotate by -45\n" : "set xtics norotate\n";
    std::string labels = flows > 40 ? "1:2" : "1:2:xtic(3)";
    return text + fmt::format("plot $flows{} using {} with boxes fs solid 0.6 lc rgb '#4477aa'\n",
                              run, labels);
  }

  const Report& report_;
  std::vector<Panel> panels_;
  TimeNs longest_ = 0;
  TimeUnit unit_{1, "ns"};
  double best_ = 0;  // goodput, in Gb/s
};

}  // namespace

std::string Report::plot() const {
  return Plot(*this).text();
}

}  // namespace rocefs
