#include "rdma/workload/workload.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace rocefs {
namespace {

// Time until a flow that cannot start has failed. What follows it starts later, so that a
// collective whose flows all fail does not run within one event.
constexpr TimeNs kRefusal = kMicrosecond;
// Flows that may wait to have failed; more start after these.
constexpr size_t kMaxRefused = 4096;

}  // namespace

Workload::Workload(Fabric& fabric, std::vector<Load> loads, WorkloadListener& listener,
                   WorkloadLimits limits)
    : fabric_(fabric),
      listener_(listener),
      limits_(std::move(limits)),
      no_stats_(std::make_shared<FlowStats>()),
      due_(event_of<&Workload::on_due>(this)),
      refuse_(event_of<&Workload::on_refused>(this)),
      reap_(event_of<&Workload::on_reap>(this)) {
  for (Load& load : loads) sources_.push_back({std::move(load)});
}

Workload::~Workload() {
  stop();
}

void Workload::begin() {
  schedule();
  if (over()) listener_.loads_over();
}

void Workload::remove_running() {
  refused_.clear();
  fabric_.scheduler().cancel(refuse_);
  while (!running_.empty()) {
    Place place = running_.begin();
    if (place->flow) place->flow->stop();
    LoadFlow flow = told(*place);
    flow.removed = true;
    settle(place, std::move(flow));
  }
}

void Workload::stop() {
  for (Source& source : sources_) source.load.flows = 0;
  refused_.clear();
  running_.clear();
  ended_.clear();
  fabric_.scheduler().cancel(due_);
  fabric_.scheduler().cancel(refuse_);
  fabric_.scheduler().cancel(reap_);
}

TimeNs Workload::due(const Source& source) {
  if (source.started >= source.load.flows) return kNever;
  TimeNs at = source.load.pattern->due();
  return at < source.load.until ? at : kNever;
}

TimeNs Workload::next_start() const {
  TimeNs next = kNever;
  for (const Source& source : sources_) next = std::min(next, due(source));
  return next;
}

std::vector<std::string> Workload::to_come() const {
  std::vector<std::string> names;
  for (const Source& source : sources_) {
    if (due(source) != kNever) names.push_back(source.load.name);
  }
  return names;
}

std::vector<std::string> Workload::stuck() const {
  std::vector<std::string> all;
  for (const Source& source : sources_) {
    const Load& load = source.load;
    bool cut = source.started >= load.flows || load.pattern->due() != kNever;
    auto own = [&](const Running& one) { return one.source == &source; };
    if (cut || std::any_of(running_.begin(), running_.end(), own)) continue;
    if (std::string why = load.pattern->stuck(); !why.empty())
      all.push_back(load.name + ": " + why);
  }
  return all;
}

uint64_t Workload::expected(TimeNs now) const {
  uint64_t all = 0;
  for (const Source& source : sources_) {
    const Load& load = source.load;
    uint64_t flows = std::min(load.flows, load.pattern->total());
    if (load.until != kNever) {
      const auto passed = static_cast<double>(now - load.start);
      const double whole = now > load.start && now < load.until
                               ? static_cast<double>(load.until - load.start) / passed
                               : 1;
      auto at_this_rate = static_cast<double>(source.started) * whole;
      if (at_this_rate < static_cast<double>(flows)) flows = static_cast<uint64_t>(at_this_rate);
    }
    flows = std::max(flows, source.started);
    all = flows > UINT64_MAX - all ? UINT64_MAX : all + flows;
  }
  return all;
}

void Workload::schedule() {
  TimeNs next = next_start();
  if (next != kNever) fabric_.scheduler().at(due_, next);
}

void Workload::on_due(TimeNs now) {
  bool woken = false;
  for (Source& source : sources_) {
    while (due(source) <= now) {
      if (refused_.size() >= kMaxRefused) return;  // on_refused() goes on
      if (std::optional<FlowStart> what = source.load.pattern->take()) {
        start_flow(source, *what, now);
      } else {
        tell_round(source);
        woken = true;
      }
    }
  }
  schedule();
  if (woken && over()) listener_.loads_over();
}

// A round in which a flow failed has no time: what it was to bring about was not done.
void Workload::tell_round(Source& source) {
  std::optional<RoundTimes> round = source.load.pattern->take_round();
  if (!round) return;
  if (!std::exchange(source.any_failed, false)) listener_.load_round_ended(source.load, *round);
}

// A flow that has ended in a region may be told of later.
LoadFlow Workload::told(const Running& one) const {
  const auto ended = static_cast<TimeNs>(one.stats->ended_ns.get());
  const TimeNs end = ended != 0 ? ended : fabric_.scheduler().now();
  return {one.source->load, one.number, one.what, one.start, end, {}, false, *one.stats};
}

void Workload::start_flow(Source& source, const FlowStart& what, TimeNs now) {
  const Load& load = source.load;
  Place place = running_.insert(
      running_.end(), {&source, source.started++, what, now, no_stats_, nullptr, nullptr, false});
  ++started_;
  if (running_.size() - refused_.size() > limits_.most_running) {
    return refuse(place, errorf(EMFILE, "{} flows run at once", limits_.most_running));
  }
  FlowSpec spec = load.flow;
  spec.name = fmt::format("{}.{}", load.name, place->number);
  spec.from = load.hosts[what.from];
  spec.to = load.hosts[what.to];
  spec.size = what.bytes;
  place->stats = std::make_shared<FlowStats>();
  place->runs = std::make_shared<const bool>(true);
  place->flow = std::make_unique<Flow>(
      fabric_, spec, limits_.owner, place->stats, nullptr, [this, place](Result<void> result) {
        tell(place, [this, place, result = std::move(result)]() mutable {
          flow_ended(place, std::move(result));
        });
      });
  if (load.pattern->waits_for_arrivals() && spec.op != FlowOp::kRead) {
    place->flow->on_arrival([this, place] { tell(place, [this, place] { flow_arrived(place); }); });
  }
  if (Result<void> begun = place->flow->start(); !begun) refuse(place, begun.error());
}

void Workload::refuse(Place place, Error why) {
  refused_.emplace_back(place, std::move(why));
  if (!refuse_.scheduled()) fabric_.scheduler().after(refuse_, kRefusal);
}

void Workload::on_refused(TimeNs) {
  for (auto& [place, why] : std::exchange(refused_, {})) flow_ended(place, std::move(why));
  schedule();
}

// On a packet core of the flow. With several cores `task` runs later: the flow may have been
// removed by then.
void Workload::tell(Place place, Task task) {
  FabricResources& part = fabric_.part_of(place->source->load.hosts[place->what.from]);
  if (!part.shares_fabric()) return task();
  part.alone([runs = std::weak_ptr(place->runs), task = std::move(task)]() mutable {
    if (!runs.expired()) task();
  });
}

void Workload::flow_arrived(Place place) {
  place->arrived = true;
  place->source->load.pattern->flow_arrived(place->what, fabric_.scheduler().now());
  tell_round(*place->source);
  schedule();
}

void Workload::flow_ended(Place place, Result<void> result) {
  LoadFlow flow = told(*place);
  flow.result = std::move(result);
  settle(place, std::move(flow));
}

// The flow may be what calls: it is freed later.
void Workload::settle(Place place, LoadFlow flow) {
  listener_.load_flow_ended(flow);
  Pattern& pattern = *place->source->load.pattern;
  if (!place->arrived) {
    if (!flow.result || flow.removed) place->source->any_failed = true;
    pattern.flow_arrived(place->what, flow.end);
  }
  pattern.flow_ended(place->what, flow.end);
  tell_round(*place->source);
  if (place->flow) ended_.push_back(std::move(place->flow));
  running_.erase(place);
  if (!reap_.scheduled()) fabric_.scheduler().after(reap_, 0);
  schedule();
  if (over()) listener_.loads_over();
}

void Workload::on_reap(TimeNs) {
  ended_.clear();
}

}  // namespace rocefs
