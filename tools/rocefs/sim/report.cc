#include "tools/rocefs/sim/report.h"

#include "core/base/units.h"
#include "tools/rocefs/sim/text_table.h"

namespace rocefs {
namespace {

// Value of a line of traffic/NAME/result; "-" without such a line.
std::string result_line(const FlowResult& flow, const std::string& key) {
  auto it = flow.result.find(key);
  return it == flow.result.end() ? "-" : it->second;
}

std::string totals(const RunResult& run) {
  const FlowStatistics& flows = run.statistics;
  const LogHistogram& slowdown = flows.all().slowdown_millionths;
  std::string text =
      fmt::format("{} of {} flows done", flows.in(FlowRecord::State::kDone), flows.flows());
  if (slowdown.count() > 0) {
    text +=
        fmt::format(", slowdown {:.2f} on average, {:.2f} at most", slowdown.mean() * kSlowdownUnit,
                    static_cast<double>(slowdown.max()) * kSlowdownUnit);
  }
  return text +
         fmt::format("; {} packet-hops; trace {:016x}\n", run.fabric.packet_hops, run.trace_hash);
}

// A line for each flow of [flows].
std::string flow_lines(const RunResult& run) {
  std::vector<TableRow> rows{{"flow", "from", "to", "bytes", "FCT", "ideal FCT", "slowdown",
                              "goodput", "retransmitted", "CNPs", "state"}};
  for (const FlowResult& flow : run.flows) {
    rows.push_back({flow.spec.name, flow.spec.from, flow.spec.to, result_line(flow, "bytes"),
                    flow.done() ? rounded_time(flow.fct_ns()) : "-", rounded_time(flow.ideal_ns),
                    flow.done() ? fmt::format("{:.2f}", flow.slowdown()) : "-",
                    rounded_rate(flow.number("goodput_bps")), result_line(flow, "retransmitted"),
                    result_line(flow, "cnps"), flow.state});
  }
  return aligned(rows, 3);
}

// Most lines of dmesg in the table.
constexpr size_t kShownWarnings = 10;

constexpr double kQuantiles[] = {0.5, 0.95, 0.99, 0.999};

// A line for each size of flows, and one for all: `text_of` formats a value of the histogram.
template <class Text>
std::string by_size(const FlowStatistics& flows, const char* what,
                    LogHistogram FlowDistribution::*histogram, Text text_of) {
  std::vector<TableRow> rows{
      {"size up to", "flows", std::string(what) + " mean", "p50", "p95", "p99", "p99.9", "max"}};
  auto add = [&](std::string size, const FlowDistribution& distribution) {
    const LogHistogram& values = distribution.*histogram;
    TableRow row{std::move(size), fmt::format("{}", values.count()), text_of(values.mean())};
    for (double fraction : kQuantiles) {
      row.push_back(text_of(static_cast<double>(values.quantile(fraction))));
    }
    row.push_back(text_of(static_cast<double>(values.max())));
    rows.push_back(std::move(row));
  };
  for (const auto& [size, distribution] : flows.by_size()) add(format_size(size), distribution);
  add("all", flows.all());
  return aligned(rows, 1);
}

// A line for each load that is a collective.
std::string load_rounds(const LoadTotals& loads) {
  if (loads.rounds.empty()) return {};
  std::vector<TableRow> rows{{"load", "rounds", "time mean", "min", "max"}};
  for (const LoadRounds& one : loads.rounds) {
    auto mean = static_cast<double>(one.total) / static_cast<double>(one.rounds);
    rows.push_back({one.load, fmt::format("{}", one.rounds), rounded_time(mean),
                    rounded_time(static_cast<double>(one.shortest)),
                    rounded_time(static_cast<double>(one.longest))});
  }
  return aligned(rows, 1);
}

// Counts by state, and the distributions of FCT and slowdown.
std::string flow_percentiles(const FlowStatistics& flows) {
  std::string text;
  for (size_t i = 0; i < FlowStatistics::kStates; ++i) {
    auto state = static_cast<FlowRecord::State>(i);
    if (flows.in(state) == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "flows: " : ", ", flows.in(state),
                        flow_state_word(state));
  }
  if (!text.empty()) text += "\n";
  if (flows.all().count() == 0) return text;
  text += by_size(flows, "FCT", &FlowDistribution::fct_ns, rounded_time);
  return text + by_size(flows, "slowdown", &FlowDistribution::slowdown_millionths,
                        [](double value) { return fmt::format("{:.2f}", value * kSlowdownUnit); });
}

}  // namespace

std::string Report::origin() const {
  std::string name = config.name.substr(config.name.rfind('/') + 1);
  return fmt::format("{}, seed {}, configuration {:016x}", name, seed, config.hash);
}

std::string Report::title() const {
  if (!config.scenario.title.empty()) return config.scenario.title;
  return config.name.substr(config.name.rfind('/') + 1);
}

std::string Report::table(const RunResult& run) const {
  std::string text = fmt::format("# {}: {}\n", title(), origin());
  if (!run.variant.empty()) text += fmt::format("# {}\n", run.variant);
  if (run.failure) text += fmt::format("# partial: {}\n", run.failure->reason);
  if (run.statistics.flows() == 0 && run.failure) return text;
  bool few = run.flows.size() == run.statistics.flows() && run.flows.size() <= kFewFlows;
  if (!run.flows.empty() && (few || all_flows)) text += flow_lines(run);
  if (!few) text += flow_percentiles(run.statistics);
  text += load_rounds(run.loads);
  for (const FaultResult& fault : run.faults) {
    text += fmt::format("fault {} fired {}: {}\n", fault.name, fault.fired, fault.spec);
  }
  for (size_t i = 0; i < run.warnings.size() && i < kShownWarnings; ++i) {
    text += fmt::format("dmesg: {}\n", run.warnings[i]);
  }
  uint64_t more = run.more_warnings + run.warnings.size();
  if (more > kShownWarnings) text += fmt::format("dmesg: {} more lines\n", more - kShownWarnings);
  for (const std::string& line : run.not_due) text += fmt::format("warning: {}\n", line);
  return text + totals(run);
}

std::string Report::series_csv() const {
  std::string text = fmt::format("# {}\nvariant,time_ns", origin());
  for (const Scenario::Line& sample : config.scenario.samples) text += "," + sample.key;
  text += "\n";
  for (const RunResult& run : runs) {
    for (const Sample& sample : run.samples) {
      text += fmt::format("{},{}", run.variant, sample.at);
      for (const std::optional<double>& value : sample.values) {
        text += value ? fmt::format(",{:.9g}", *value) : ",";
      }
      text += "\n";
    }
  }
  return text;
}

}  // namespace rocefs
