#include "tools/rocefs/sim/run_summary.h"

namespace rocefs {
namespace {

// Most points of a CDF: more are not seen in a plot.
constexpr size_t kCdfPoints = 200;

constexpr std::string_view kEndWords[] = {"flows done", "until", "limit", "signal", "failed"};

SizeSummary size_summary(uint64_t size, const FlowDistribution& flows) {
  return {size, flows.count(), figures_of(flows.fct_ns),
          figures_of(flows.slowdown_millionths, 1 / kSlowdownUnit)};
}

// Points at which the share has grown by 1/kCdfPoints, and the last one.
std::vector<std::pair<double, double>> cdf_of(const LogHistogram& values) {
  std::vector<std::pair<double, double>> points;
  auto all = static_cast<double>(values.count());
  uint64_t seen = 0;
  double shown = -1;
  values.each([&](uint64_t value, uint64_t count) {
    seen += count;
    double share = static_cast<double>(seen) / all;
    if (share - shown < 1.0 / kCdfPoints && seen != values.count()) return;
    shown = share;
    points.emplace_back(static_cast<double>(value) * kSlowdownUnit, six_digits(share));
  });
  for (auto& [value, share] : points) value = six_digits(value);
  return points;
}

SummaryJson figures_json(const Figures& figures) {
  SummaryJson json = SummaryJson::object();
  for (size_t i = 0; i < figures.size(); ++i) json[kFigureNames[i]] = figures[i];
  return json;
}

Figures figures_from(const SummaryJson& json) {
  Figures figures{};
  for (size_t i = 0; i < figures.size(); ++i) figures[i] = json.at(kFigureNames[i]).get<double>();
  return figures;
}

// Octets of the egress queues over time: of all together, and of the worst one.
SummaryJson queues_json(const AllQueues& all) {
  SummaryJson json = SummaryJson::object();
  json["used"] = all.queues.size();
  json["octets"] = figures_json(all.octets);
  if (const QueueTotals* worst = all.worst()) {
    json["worst"] = worst->of;
    json["worst_octets"] = figures_json(worst->octets);
  }
  return json;
}

// Rounds of the loads that are collectives, by load.
SummaryJson rounds_json(const LoadTotals& loads) {
  SummaryJson json = SummaryJson::object();
  for (const LoadRounds& one : loads.rounds) {
    const auto mean = static_cast<double>(one.total) / static_cast<double>(one.rounds);
    json[one.load] = {{"rounds", one.rounds},
                      {"mean_ns", six_digits(mean)},
                      {"min_ns", one.shortest},
                      {"max_ns", one.longest}};
  }
  return json;
}

SummaryJson rest_of(const RunResult& run) {
  SummaryJson rest = SummaryJson::object();
  const FlowStatistics::Totals& flows = run.statistics.totals();
  rest["payload_bytes"] = flows.bytes;
  rest["retransmitted"] = flows.retransmitted;
  rest["cnps"] = flows.cnps;
  rest["timeouts"] = flows.timeouts;
  const FabricTotals& fabric = run.fabric;
  rest["packet_hops"] = fabric.packet_hops;
  rest["events"] = run.events;
  rest["trace_hash"] = fmt::format("{:016x}", run.trace_hash);
  rest["ce_marked"] = fabric.ce_marked;
  rest["pause_frames"] = fabric.pause_frames;
  rest["paused_ns"] = fabric.paused_ns;
  rest["xmit_wait_ns"] = fabric.xmit_wait_ns;
  rest["queue_peak"] = fabric.queue_peak;
  if (run.queues) rest["queues"] = queues_json(*run.queues);
  rest["buffer_peak"] = fabric.buffer_peak;
  rest["ingress_peak"] = fabric.ingress_peak;
  double utilization = 0;
  for (const LinkTotals& link : fabric.links) {
    utilization = std::max(utilization, link.utilization());
  }
  rest["highest_link_utilization"] = six_digits(utilization);
  if (!run.loads.rounds.empty()) rest["rounds"] = rounds_json(run.loads);
  rest["drops"] = SummaryJson::object();
  for (const auto& [reason, count] : fabric.drops) rest["drops"][std::string(reason)] = count;
  rest["lacked_room"] = SummaryJson::object();
  for (const auto& [room, count] : fabric.lacked_room) {
    rest["lacked_room"][std::string(room)] = count;
  }
  rest["faults"] = SummaryJson::object();
  for (const FaultResult& fault : run.faults) rest["faults"][fault.name] = fault.fired;
  rest["warnings"] = run.warnings;
  for (const std::string& line : run.not_due) rest["warnings"].push_back(line);
  if (run.more_warnings > 0) rest["more_warnings"] = run.more_warnings;
  if (run.end_kind == RunEnd::kFailed) rest["log"] = run.log;
  return rest;
}

}  // namespace

RunSummary RunSummary::of(const RunResult& run, uint64_t seed) {
  RunSummary summary;
  summary.variant = run.variant;
  summary.seed = seed;
  summary.end = kEndWords[static_cast<size_t>(run.end_kind)];
  if (run.failure) summary.reason = run.failure->reason;
  summary.virtual_time = run.end;
  for (size_t i = 0; i < FlowStatistics::kStates; ++i) {
    auto state = static_cast<FlowRecord::State>(i);
    if (uint64_t flows = run.statistics.in(state)) {
      summary.states.emplace_back(flow_state_word(state), flows);
    }
  }
  for (const auto& [size, flows] : run.statistics.by_size()) {
    summary.sizes.push_back(size_summary(size, flows));
  }
  summary.sizes.push_back(size_summary(0, run.statistics.all()));
  summary.slowdown_cdf = cdf_of(run.statistics.all().slowdown_millionths);
  summary.rest = rest_of(run);
  return summary;
}

bool RunSummary::good() const {
  for (const SummaryJson& fired : rest.at("faults")) {
    if (fired == 0) return false;
  }
  if (partial()) return false;
  return end == kEndWords[static_cast<size_t>(RunEnd::kUntil)] ||
         std::all_of(states.begin(), states.end(), [](const auto& state) {
           return state.first == flow_state_word(FlowRecord::State::kDone) ||
                  state.first == flow_state_word(FlowRecord::State::kLost);
         });
}

SummaryJson RunSummary::json() const {
  SummaryJson json = SummaryJson::object();
  json["variant"] = variant;
  json["seed"] = seed;
  json["end"] = end;
  json["partial"] = partial();
  if (partial()) json["reason"] = reason;
  json["virtual_time_ns"] = virtual_time;
  json["flows"] = SummaryJson::object();
  for (const auto& [state, flows] : states) json["flows"][state] = flows;
  json["sizes"] = SummaryJson::array();
  for (const SizeSummary& one : sizes) {
    SummaryJson row = SummaryJson::object();
    row["up_to_bytes"] = one.size ? SummaryJson(one.size) : SummaryJson();
    row["flows"] = one.flows;
    row["fct_ns"] = figures_json(one.fct_ns);
    row["slowdown"] = figures_json(one.slowdown);
    json["sizes"].push_back(std::move(row));
  }
  json["slowdown_cdf"] = slowdown_cdf;
  json.update(rest);
  return json;
}

RunSummary RunSummary::from(const SummaryJson& json) {
  RunSummary summary;
  summary.variant = json.at("variant").get<std::string>();
  summary.seed = json.at("seed").get<uint64_t>();
  summary.end = json.at("end").get<std::string>();
  if (json.at("partial").get<bool>()) summary.reason = json.at("reason").get<std::string>();
  summary.virtual_time = json.at("virtual_time_ns").get<TimeNs>();
  for (const auto& [state, flows] : json.at("flows").items()) {
    summary.states.emplace_back(state, flows.get<uint64_t>());
  }
  for (const SummaryJson& row : json.at("sizes")) {
    const SummaryJson& size = row.at("up_to_bytes");
    summary.sizes.push_back({size.is_null() ? 0 : size.get<uint64_t>(),
                             row.at("flows").get<uint64_t>(), figures_from(row.at("fct_ns")),
                             figures_from(row.at("slowdown"))});
  }
  for (const SummaryJson& point : json.at("slowdown_cdf")) {
    summary.slowdown_cdf.emplace_back(point.at(0).get<double>(), point.at(1).get<double>());
  }
  bool behind = false;
  for (const auto& [key, value] : json.items()) {
    if (behind) summary.rest[key] = value;
    behind = behind || key == "slowdown_cdf";
  }
  return summary;
}

SummaryJson summary_head(const Config& config) {
  SummaryJson json = SummaryJson::object();
  json["file"] = config.name.substr(config.name.rfind('/') + 1);
  json["title"] = config.scenario.title;
  json["configuration"] = fmt::format("{:016x}", config.hash);
  return json;
}

// Bytes of a name that are no UTF-8 must not end the run.
std::string summary_text(const SummaryJson& json) {
  return json.dump(1, ' ', false, SummaryJson::error_handler_t::replace) + "\n";
}

std::string timing_csv_head() {
  return "variant,seed,cpu_seconds,packet_hops,packet_hops_per_cpu_second,events,"
         "events_per_cpu_second\n";
}

std::string timing_csv(const RunResult& run, uint64_t seed) {
  return fmt::format("{},{},{:.3f},{},{:.0f},{},{:.0f}\n", run.variant, seed, run.cpu_seconds,
                     run.fabric.packet_hops, run.per_cpu_second(run.fabric.packet_hops), run.events,
                     run.per_cpu_second(run.events));
}

}  // namespace rocefs
