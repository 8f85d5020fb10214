#include "tools/rocefs/sim/means.h"

#include <cmath>

#include "core/base/units.h"

namespace rocefs {
namespace {

constexpr double kStudent[] = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060,
                               2.2622,  2.2281, 2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199,
                               2.1098,  2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639,
                               2.0595,  2.0555, 2.0518, 2.0484, 2.0452, 2.0423};

// Samples of all figures of one size.
struct SizeSamples {
  std::vector<double> flows;
  std::vector<std::vector<double>> fct_ns, slowdown;

  SizeSamples() : fct_ns(std::size(kFigureNames)), slowdown(std::size(kFigureNames)) {}
  void add(const SizeSummary& one) {
    flows.push_back(static_cast<double>(one.flows));
    if (one.flows == 0) return;
    for (size_t i = 0; i < one.fct_ns.size(); ++i) {
      fct_ns[i].push_back(one.fct_ns[i]);
      slowdown[i].push_back(one.slowdown[i]);
    }
  }
  SizeMeans means(uint64_t size) const {
    SizeMeans means;
    means.size = size;
    means.flows = mean_of(flows);
    for (const auto& samples : fct_ns) means.fct_ns.push_back(mean_of(samples));
    for (const auto& samples : slowdown) means.slowdown.push_back(mean_of(samples));
    return means;
  }
};

// Adds the numbers of an object to the samples of their keys.
void add_numbers(const SummaryJson& object, const std::string& prefix,
                 std::map<std::string, std::vector<double>>& samples) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) add_numbers(value, prefix + key + ".", samples);
    if (value.is_number()) samples[prefix + key].push_back(value.get<double>());
  }
}

// Adds how many flows of a run are in each state, as flows.STATE, and how many are not done.
void add_states(const RunSummary& run, std::map<std::string, std::vector<double>>& samples) {
  uint64_t not_done = 0;
  for (const auto& [state, flows] : run.states) {
    samples["flows." + state].push_back(static_cast<double>(flows));
    if (state != flow_state_word(FlowRecord::State::kDone)) not_done += flows;
  }
  samples["flows.not_done"].push_back(static_cast<double>(not_done));
}

std::string counted(double value) {
  return value < 100 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
}
std::string percent(double value) {
  return fmt::format("{:.1f} %", value * 100);
}

VariantMeans variant_means(const std::string& variant, const std::vector<RunSummary>& runs,
                           PartialRuns partial) {
  VariantMeans means;
  means.variant = variant;
  for (const RunSummary& run : runs) {
    if (run.variant != variant) continue;
    ++means.runs;
    if (!run.partial()) ++means.complete;
  }
  const bool all_runs = partial == PartialRuns::kIfAlone && means.complete == 0;
  means.counted = all_runs ? means.runs : means.complete;
  std::map<uint64_t, SizeSamples> sizes;
  std::map<std::string, std::vector<double>> totals;
  for (const RunSummary& run : runs) {
    if (run.variant != variant || (run.partial() && !all_runs)) continue;
    for (const SizeSummary& one : run.sizes) sizes[one.size].add(one);
    add_numbers(run.rest, "", totals);
    add_states(run, totals);
  }
  // A run in which no flow is in a state has none in it.
  for (auto& [key, samples] : totals) {
    if (key.starts_with("flows.")) samples.resize(means.counted);
  }
  for (const auto& [key, samples] : totals) means.totals[key] = mean_of(samples);
  // A run without flows of a size has none of them.
  for (auto& [size, samples] : sizes) samples.flows.resize(means.counted);
  for (const auto& [size, samples] : sizes) {
    if (size != 0) means.sizes.push_back(samples.means(size));
  }
  if (auto all = sizes.find(0); all != sizes.end()) means.sizes.push_back(all->second.means(0));
  return means;
}

double rounded(double value) {
  return std::round(value * 1e6) / 1e6;
}

SummaryJson mean_json(const Mean& mean) {
  SummaryJson json = SummaryJson::object();
  json["mean"] = rounded(mean.value);
  json["ci95"] = mean.half_width ? SummaryJson(rounded(*mean.half_width)) : SummaryJson();
  json["runs"] = mean.count;
  return json;
}

SummaryJson figure_means_json(const std::vector<Mean>& figures) {
  SummaryJson json = SummaryJson::object();
  for (size_t i = 0; i < figures.size(); ++i) json[kFigureNames[i]] = mean_json(figures[i]);
  return json;
}

template <class Text>
std::string with_interval(const Mean& mean, Text text_of) {
  if (mean.count == 0) return "-";
  std::string text = text_of(mean.value);
  return mean.half_width ? text + " ±" + text_of(*mean.half_width) : text;
}

template <class Text>
std::string figure_table(const std::vector<VariantMeans>& all, const char* what,
                         std::vector<Mean> SizeMeans::*figures, Text text_of) {
  std::vector<TableRow> rows{{"variant", "size up to", "runs", "flows a run"}};
  for (const char* name : kFigureNames) rows[0].push_back(name);
  rows[0][4] = std::string(what) + " mean";
  for (const VariantMeans& variant : all) {
    for (const SizeMeans& size : variant.sizes) {
      if (size.size == 0 && variant.sizes.size() == 2) continue;  // one size is all
      TableRow row{variant.variant.empty() ? "-" : variant.variant,
                   size.size ? format_size(size.size) : "all",
                   fmt::format("{}", (size.*figures)[0].count),
                   fmt::format("{:.6g}", size.flows.value)};
      for (const Mean& figure : size.*figures) row.push_back(with_interval(figure, text_of));
      rows.push_back(std::move(row));
    }
  }
  return aligned(rows, 2);
}

std::string totals_table(const std::vector<VariantMeans>& all) {
  std::vector<TableRow> rows{{"variant", "runs"}};
  for (const TotalColumn& column : kTotalColumns) rows[0].push_back(column.heading);
  for (const VariantMeans& means : all) {
    TableRow row{means.variant.empty() ? "-" : means.variant, fmt::format("{}", means.counted)};
    for (const TotalColumn& column : kTotalColumns) row.push_back(total_text(means, column));
    rows.push_back(std::move(row));
  }
  return aligned(rows, 1);
}

}  // namespace

const std::vector<TotalColumn> kTotalColumns = {
    {"not done", "flows.not_done", counted},
    {"retransmitted", "retransmitted", counted},
    {"CNPs", "cnps", counted},
    {"marked CE", "ce_marked", counted},
    {"PAUSE frames", "pause_frames", counted},
    {"time paused", "paused_ns", rounded_time},
    {"lost", "drops.lost", counted},
    {"dropped", "drops.dropped", counted},
    {"longest queue", "queue_peak", counted},
    {"p99 of the worst queue", "queues.worst_octets.p99", counted},
    {"busiest link", "highest_link_utilization", percent},
};

std::vector<TableRow> rounds_of(const std::vector<VariantMeans>& all) {
  constexpr std::string_view kBegin = "rounds.", kEnd = ".mean_ns";
  std::vector<TableRow> rows{{"variant", "load", "runs", "rounds", "time mean", "min", "max"}};
  for (const VariantMeans& means : all) {
    for (const auto& [key, mean] : means.totals) {
      if (!key.starts_with(kBegin) || !key.ends_with(kEnd)) continue;
      const std::string of = key.substr(0, key.size() - kEnd.size());
      auto time_of = [&](const char* what) {
        return with_interval(means.totals.at(of + what), rounded_time);
      };
      rows.push_back({means.variant.empty() ? "-" : means.variant, of.substr(kBegin.size()),
                      fmt::format("{}", mean.count), counted(means.totals.at(of + ".rounds").value),
                      time_of(".mean_ns"), time_of(".min_ns"), time_of(".max_ns")});
    }
  }
  if (rows.size() == 1) rows.clear();
  return rows;
}

std::string total_text(const VariantMeans& means, const TotalColumn& column) {
  const auto found = means.totals.find(column.key);
  return found == means.totals.end() ? "-" : with_interval(found->second, column.text_of);
}

// Beyond the table: the expansion of Abramowitz and Stegun, 26.7.5.
double student_t(size_t freedom) {
  if (freedom <= std::size(kStudent)) return kStudent[freedom - 1];
  const double z = 1.959964, v = static_cast<double>(freedom), z3 = z * z * z;
  return z + (z3 + z) / (4 * v) + (5 * z3 * z * z + 16 * z3 + 3 * z) / (96 * v * v);
}

Mean mean_of(const std::vector<double>& samples) {
  Mean mean;
  mean.count = samples.size();
  if (samples.empty()) return mean;
  auto count = static_cast<double>(samples.size());
  double sum = 0, squares = 0;
  for (double sample : samples) sum += sample;
  mean.value = sum / count;
  if (samples.size() == 1) return mean;
  for (double sample : samples) squares += (sample - mean.value) * (sample - mean.value);
  mean.half_width = student_t(samples.size() - 1) * std::sqrt(squares / (count - 1) / count);
  return mean;
}

std::vector<VariantMeans> means_of(const std::vector<RunSummary>& runs, PartialRuns partial) {
  std::vector<VariantMeans> all;
  for (const RunSummary& run : runs) {
    bool known = std::any_of(all.begin(), all.end(), [&](const VariantMeans& means) {
      return means.variant == run.variant;
    });
    if (!known) all.push_back(variant_means(run.variant, runs, partial));
  }
  return all;
}

SummaryJson means_json(const std::vector<VariantMeans>& means) {
  SummaryJson json = SummaryJson::array();
  for (const VariantMeans& variant : means) {
    SummaryJson one = SummaryJson::object();
    one["variant"] = variant.variant;
    one["runs"] = variant.runs;
    one["complete"] = variant.complete;
    one["sizes"] = SummaryJson::array();
    for (const SizeMeans& size : variant.sizes) {
      SummaryJson row = SummaryJson::object();
      row["up_to_bytes"] = size.size ? SummaryJson(size.size) : SummaryJson();
      row["flows"] = mean_json(size.flows);
      row["fct_ns"] = figure_means_json(size.fct_ns);
      row["slowdown"] = figure_means_json(size.slowdown);
      one["sizes"].push_back(std::move(row));
    }
    one["totals"] = SummaryJson::object();
    for (const auto& [key, mean] : variant.totals) one["totals"][key] = mean_json(mean);
    json.push_back(std::move(one));
  }
  return json;
}

std::string means_table(const std::vector<VariantMeans>& means) {
  const std::vector<TableRow> rounds = rounds_of(means);
  return figure_table(means, "FCT", &SizeMeans::fct_ns, rounded_time) +
         figure_table(means, "slowdown", &SizeMeans::slowdown,
                      [](double value) { return fmt::format("{:.2f}", value); }) +
         (rounds.empty() ? "" : aligned(rounds, 2)) + totals_table(means);
}

}  // namespace rocefs
