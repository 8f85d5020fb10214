#include "tools/rocefs/sim/queue_totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace rocefs {
namespace {

double busy_part(const OctetTimes& times) {
  uint64_t empty = 0;
  times.each([&](uint64_t octets, uint64_t ns) {
    if (octets == 0) empty = ns;
  });
  auto all = static_cast<double>(times.count());
  return times.count() ? six_digits(1 - static_cast<double>(empty) / all) : 0;
}

// A queue that has been used.
QueueTotals queue_totals_of(const Switch& hub, size_t port, size_t priority, TimeNs now) {
  const SwitchPort& at = hub.port(port);
  const OctetTimes& times = *hub.queue(port, priority).times;
  QueueTotals totals;
  totals.of = fmt::format("{}/ports/{}/queue/{}", hub.name(), port + 1, priority);
  totals.link = at.egress.link->name();
  totals.priority = priority;
  totals.octets = figures_of(times);
  totals.busy = busy_part(times);
  totals.paused_ns = at.egress.link->pause_state(priority).paused_ns(now);
  totals.marked = at.rest->egress_counters[priority].marked.get();
  totals.dropped = at.rest->egress_counters[priority].dropped.get();
  return totals;
}

}  // namespace

const QueueTotals* AllQueues::worst() const {
  auto rank = [](const QueueTotals& one) {
    return std::tuple(one.octets[kP99Figure], one.octets[kMaxFigure]);
  };
  auto found = std::max_element(queues.begin(), queues.end(),
                                [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return found == queues.end() ? nullptr : &*found;
}

AllQueues AllQueues::of(const Fabric& fabric, TimeNs now) {
  AllQueues all;
  OctetTimes pooled;
  for (const auto& hub : fabric.switches()) {
    hub->note_queues(now);
    for (size_t port = 0; port < hub->port_count(); ++port) {
      for (size_t priority = 0; priority < kPriorities; ++priority) {
        const OctetTimes* times = hub->queue(port, priority).times;
        if (!times) continue;
        pooled.merge(*times);
        all.queues.push_back(queue_totals_of(*hub, port, priority, now));
      }
    }
  }
  all.octets = figures_of(pooled);
  return all;
}

std::string queues_csv_head() {
  std::string text = "variant,queue,link,priority";
  for (const char* name : kFigureNames) text += fmt::format(",{}", name);
  return text + ",busy,paused_ns,ce_marked,dropped\n";
}

std::string queues_csv(const std::string& variant, const AllQueues& all) {
  std::string text;
  for (const QueueTotals& one : all.queues) {
    text += fmt::format("{},{},{},{}", variant, one.of, one.link, one.priority);
    for (double figure : one.octets) text += fmt::format(",{:.10g}", figure);
    text += fmt::format(",{:.6f},{},{},{}\n", one.busy, one.paused_ns, one.marked, one.dropped);
  }
  return text;
}

}  // namespace rocefs
