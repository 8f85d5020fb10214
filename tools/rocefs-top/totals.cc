#include "tools/rocefs-top/totals.h"

#include "tools/rocefs-top/columns.h"
#include "tools/rocefs-top/table.h"

namespace rocefs::top {
namespace {

// Sum of a column over all records. Records that are new, or began again, add no rate.
Totals::Count sum_of_column(Screen screen, std::string_view name, const Look& before,
                            const Look& now) {
  const Column& column = columns_of(screen)[*column_named(screen, name)];
  const bool passed = seconds_between(before, now) > 0;
  Totals::Count sum;
  if (passed) sum.per_s = 0;
  const std::vector<Record>& earlier = before.of(screen);
  const std::vector<Record>& all = now.of(screen);
  for (size_t i = 0; i < all.size(); ++i) {
    sum.all += column.number({all[i], all[i], now}).value_or(0);
    if (!passed) continue;
    const bool same = i < earlier.size() && earlier[i].key == all[i].key;
    const Record* old_record = same ? &earlier[i] : before.find(screen, all[i].key);
    *sum.per_s += rate_of(column, all[i], old_record, before, now).value_or(0);
  }
  return sum;
}

}  // namespace

Totals totals_of(const Look& before, const Look& now) {
  auto sum = [&](Screen screen, std::string_view name) {
    return sum_of_column(screen, name, before, now);
  };
  Totals totals;
  totals.out = sum(Screen::kDevices, "out");
  totals.in = sum(Screen::kDevices, "in");
  totals.cnps = sum(Screen::kDevices, "cnps_sent");
  totals.retransmissions = sum(Screen::kDevices, "retransmissions");
  totals.lost = sum(Screen::kLinks, "lost");
  totals.dropped = sum(Screen::kQueues, "dropped");
  totals.marked = sum(Screen::kQueues, "marked");
  totals.pauses = sum(Screen::kQueues, "pauses_sent");

  const double seconds = seconds_between(before, now);
  double octets = 0;
  for (const auto& [port, link] : now.out_links) {
    const Record* record = now.find(Screen::kLinks, link);
    if (!record) continue;
    totals.capacity += record->rate(kLinkRate).value_or(0);
    const Record* earlier = before.find(Screen::kLinks, link);
    const double sent = octets_on_wire(*record).value_or(0);
    octets += sent - (earlier ? octets_on_wire(*earlier).value_or(sent) : sent);
  }
  if (seconds > 0 && totals.capacity > 0 && octets >= 0) {
    totals.load = octets * 8 / seconds / totals.capacity * 100;
  }
  for (const Record& queue : now.of(Screen::kQueues)) {
    totals.queued += queue.number(kQueued).value_or(0);
    if (queue.texts[kPaused] == "1") ++totals.paused;
  }
  totals.devices = now.of(Screen::kDevices).size();
  totals.links = now.of(Screen::kLinks).size();
  totals.queues = now.of(Screen::kQueues).size();
  totals.flows = now.of(Screen::kFlows).size();
  for (const Record& flow : now.of(Screen::kFlows)) {
    if (flow.texts[kFlowState] == "running") ++totals.running;
  }
  return totals;
}

}  // namespace rocefs::top
