#include "tools/rocefs/sim/report.h"

#include <algorithm>
#include <array>

#include "core/base/units.h"

namespace rocefs {
namespace {

// Formats 1234567 ns as "1.235 ms".
std::string rounded_time(double ns) {
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.2f} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.3f} ms", ns / 1e6);
  return fmt::format("{:.3f} s", ns / 1e9);
}

std::string rounded_rate(double bps) {
  if (bps < 1e9) return fmt::format("{:.2f} Mb/s", bps / 1e6);
  return fmt::format("{:.2f} Gb/s", bps / 1e9);
}

// Value of a line of traffic/NAME/result; "-" without such a line.
std::string result_line(const FlowResult& flow, const std::string& key) {
  auto it = flow.result.find(key);
  return it == flow.result.end() ? "-" : it->second;
}

using Cells = std::vector<std::string>;

// Formats a table: columns as wide as their widest cell, the first three left-aligned, the others
// right-aligned.
std::string aligned(const std::vector<Cells>& rows) {
  std::vector<size_t> widths(rows[0].size());
  for (const Cells& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Cells& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += i < 3 ? fmt::format("{:<{}}  ", row[i], widths[i])
                    : fmt::format("{:>{}}  ", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string totals(const RunResult& run) {
  double sum = 0, worst = 0;
  uint64_t done = 0;
  for (const FlowResult& flow : run.flows) {
    if (!flow.done()) continue;
    ++done;
    sum += flow.slowdown();
    worst = std::max(worst, flow.slowdown());
  }
  std::string text = fmt::format("{} of {} flows done", done, run.flows.size());
  if (done > 0) {
    text += fmt::format(", slowdown {:.2f} on average, {:.2f} at most",
                        sum / static_cast<double>(done), worst);
  }
  return text + fmt::format("; {} packet-hops; trace {:016x}\n", run.packet_hops, run.trace_hash);
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
  std::vector<Cells> rows{{"flow", "from", "to", "bytes", "FCT", "ideal FCT", "slowdown", "goodput",
                           "retransmitted", "CNPs", "state"}};
  for (const FlowResult& flow : run.flows) {
    rows.push_back({flow.spec.name, flow.spec.from, flow.spec.to, result_line(flow, "bytes"),
                    flow.done() ? rounded_time(flow.fct_ns()) : "-", rounded_time(flow.ideal_ns),
                    flow.done() ? fmt::format("{:.2f}", flow.slowdown()) : "-",
                    rounded_rate(flow.number("goodput_bps")), result_line(flow, "retransmitted"),
                    result_line(flow, "cnps"), flow.state});
  }
  if (!run.flows.empty()) text += aligned(rows);
  for (const FaultResult& fault : run.faults) {
    text += fmt::format("fault {} fired {}: {}\n", fault.name, fault.fired, fault.spec);
  }
  return text + totals(run);
}

std::string Report::flows_csv() const {
  std::string text = fmt::format(
      "# {}\nvariant,flow,from,to,start_ns,bytes,fct_ns,ideal_ns,slowdown,goodput_bps,"
      "retransmitted,cnps,state\n",
      origin());
  for (const RunResult& run : runs) {
    for (const FlowResult& flow : run.flows) {
      std::string fct = flow.done() ? result_line(flow, "elapsed_ns") : "";
      std::string slowdown = flow.done() ? fmt::format("{:.4f}", flow.slowdown()) : "";
      text += fmt::format("{},{},{},{},{},{},{},{:.0f},{},{},{},{},\"{}\"\n", run.variant,
                          flow.spec.name, flow.spec.from, flow.spec.to, flow.start,
                          result_line(flow, "bytes"), fct, flow.ideal_ns, slowdown,
                          result_line(flow, "goodput_bps"), result_line(flow, "retransmitted"),
                          result_line(flow, "cnps"), flow.state);
    }
  }
  return text;
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
