// Simulation's flows of [flows]: what the file says of them, and what their files in traffic/ tell.
#include <algorithm>
#include <cerrno>

#include "core/base/text.h"
#include "core/base/units.h"
#include "tools/rocefs/sim/simulation.h"
#include "tools/rocefs/sim/thread_rules.h"
#include "tools/rocefs/sim/words.h"

namespace rocefs {

// Adds a flow of [flows]. Payload is not verified unless the line has verify=.
Result<void> Simulation::add_flow(const Scenario::Line& line) {
  std::vector<std::string_view> words = split(line.value, " \t");
  FlowResult flow;
  if (std::optional<std::string> start = take_word(words, "start")) {
    if (Result<void> kept = keep("start", parse_duration(*start), flow.start); !kept) return kept;
  }
  std::string text = fmt::format("{} {}", line.key, joined(words));
  Result<FlowSpec> spec = parse_flow(text);
  if (!spec) return spec.error();
  if (spec->accepts || spec->remote) {
    return Error{EINVAL, "a simulation has no flows between mounts"};
  }
  bool has_verify = text.find(" verify=") != text.npos;
  if (!has_verify && spec->input.empty() && spec->op != FlowOp::kAtomic) text += " verify=off";
  for (const std::string& port : {spec->from, spec->to}) {
    if (!instance_->fabric().port(port)) return errorf(EINVAL, "no device {}", port);
  }
  flow.spec = *spec;
  Fabric& fabric = instance_->fabric();
  Result<void> fits = check_flow_ports(*spec, *fabric.port(spec->from), *fabric.port(spec->to));
  if (fits && fabric.in_regions()) fits = check_threads(*spec);
  if (!fits) return fits;
  Result<double> ideal = ideal_->fct_ns(*spec);
  if (!ideal) return ideal.error();
  flow.ideal_ns = *ideal;
  stores_.push_back({flow.start, below_debug("traffic/start"), text, line.line});
  result_.flows.push_back(std::move(flow));
  return {};
}

// Reads the state of the flows that run, and tells of those that have ended in the order of their
// ends. A flow without files was removed, by a reset or a stop.
void Simulation::note_ended() {
  std::vector<std::pair<TimeNs, FlowResult*>> ended;
  std::erase_if(running_, [&](size_t place) {
    FlowResult& flow = result_.flows[place];
    std::optional<std::string> state = text_of(below_debug("traffic/" + flow.spec.name + "/state"));
    flow.state = state ? std::string(without_newline(*state)) : "removed";
    if (flow.state == "running") return false;
    take_result(flow);
    flow.note_loss();
    ended.emplace_back(flow.start + flow.record().elapsed, &flow);
    return true;
  });
  std::stable_sort(ended.begin(), ended.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [end, flow] : ended) flow_ended(flow->record());
}

// Names what a run that is cut off leaves undone.
std::string Simulation::left_over(TimeNs now) const {
  std::string text =
      fmt::format("{} of {} flows still run after {}", running_.size() + loads_->running(),
                  flows_known(), format_duration(now));
  if (const size_t more = to_come_.size(); more > 0) {
    text += fmt::format(", {} {} not started", more, more == 1 ? "has" : "have");
  }
  const std::vector<std::string> loads = loads_->to_come();
  if (loads.empty()) return text;
  return text + fmt::format(", {} {} flows to come",
                            loads.size() == 1 ? "load " + loads[0]
                                              : fmt::format("loads {}", fmt::join(loads, ", ")),
                            loads.size() == 1 ? "has" : "have");
}

// Adds those whose time has come to the flows that run.
void Simulation::note_started(TimeNs now) {
  while (!to_come_.empty() && result_.flows[to_come_.back()].start <= now) {
    running_.push_back(to_come_.back());
    to_come_.pop_back();
  }
}

// Before a store that may remove flows: keeps the ends since the last step, and what the flows that
// run have moved.
void Simulation::look_at_flows() {
  note_ended();
  if (running_.empty()) return;
  on_core([this] { instance_->traffic().account(); });
  for (size_t place : running_) take_result(result_.flows[place]);
}

// While the engine runs, on the core thread: this one waits then.
void Simulation::flow_ended(const FlowRecord& flow) {
  result_.statistics.flow_ended(flow);
  if (options_.flows) options_.flows->flow_ended(flow);
}

// Reads what a flow has moved; what was read before stays if the flow has no files any more.
void Simulation::take_result(FlowResult& flow) {
  std::optional<std::string> text = text_of(below_debug("traffic/" + flow.spec.name + "/result"));
  if (!text) return;
  flow.result.clear();
  for (std::string_view line : split(*text, "\n")) {
    size_t blank = std::min(line.find(' '), line.size() - 1);
    flow.result[std::string(line.substr(0, blank))] = line.substr(blank + 1);
  }
}

}  // namespace rocefs
