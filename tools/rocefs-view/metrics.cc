#include "tools/rocefs-view/metrics.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "core/base/text.h"
#include "core/base/units.h"

namespace rocefs {
namespace {

// Reading of a file's text as a number.
enum class Meaning { kNumber, kRate, kUp, kNanoseconds, kSize };

struct MetricRow {
  const char* pattern;  // each * is a label
  const char* name;
  const char* type;
  const char* help;
  std::array<const char*, 3> labels;
  Meaning meaning = Meaning::kNumber;
};

#define ROCEFS_FILES "kernel/debug/rocefs/"
#define ROCEFS_PORT ROCEFS_FILES "fabric/*/ports/*/"
constexpr MetricRow kMetrics[] = {
    {ROCEFS_FILES "clock/now_ns",
     "rocefs_clock_seconds",
     "gauge",
     "time of the mount's clock",
     {},
     Meaning::kNanoseconds},
    {ROCEFS_FILES "links/*/bytes",
     "rocefs_link_bytes_total",
     "counter",
     "octets transmitted on this direction of a cable, IP header to ICRC",
     {"link"}},
    {ROCEFS_FILES "links/*/packets",
     "rocefs_link_packets_total",
     "counter",
     "packets transmitted on this direction of a cable",
     {"link"}},
    {ROCEFS_FILES "links/*/lost",
     "rocefs_link_lost_total",
     "counter",
     "packets lost by the link",
     {"link"}},
    {ROCEFS_FILES "links/*/overflowed",
     "rocefs_link_overflowed_total",
     "counter",
     "packets dropped by the switch that transmits on it: its buffer was full",
     {"link"}},
    {ROCEFS_FILES "links/*/rate",
     "rocefs_link_rate_bytes_per_second",
     "gauge",
     "octets per second that this direction transmits, Ethernet framing included",
     {"link"},
     Meaning::kRate},
    {ROCEFS_FILES "links/*/state", "rocefs_link_up", "gauge", "1: up", {"link"}, Meaning::kUp},
    {ROCEFS_FILES "fabric/*/buffer/used",
     "rocefs_switch_buffer_used_bytes",
     "gauge",
     "octets stored in the switch",
     {"switch"}},
    {ROCEFS_FILES "fabric/*/buffer/size",
     "rocefs_switch_buffer_size_bytes",
     "gauge",
     "memory of the switch",
     {"switch"},
     Meaning::kSize},
    {ROCEFS_PORT "queue/*/peak",
     "rocefs_queue_peak_bytes",
     "gauge",
     "most octets that waited in an egress queue",
     {"switch", "port", "priority"}},
    {ROCEFS_PORT "queue/*/bytes",
     "rocefs_queue_bytes",
     "gauge",
     "octets that wait in an egress queue",
     {"switch", "port", "priority"}},
    {ROCEFS_PORT "queue/*/marked",
     "rocefs_queue_marked_total",
     "counter",
     "packets that an egress queue marked as congested (CE)",
     {"switch", "port", "priority"}},
    {ROCEFS_PORT "queue/*/dropped",
     "rocefs_queue_dropped_total",
     "counter",
     "packets for an egress queue that the switch had no room for",
     {"switch", "port", "priority"}},
    {ROCEFS_PORT "pfc/*/paused",
     "rocefs_pfc_paused",
     "gauge",
     "1: the far end of the cable has paused this priority",
     {"switch", "port", "priority"}},
    {ROCEFS_PORT "pfc/*/pause_sent",
     "rocefs_pfc_pause_sent_total",
     "counter",
     "PAUSE frames by which the switch stopped the far end",
     {"switch", "port", "priority"}},
    {"class/infiniband/*/ports/*/hw_counters/np_cnp_sent",
     "rocefs_device_cnp_sent_total",
     "counter",
     "congestion notification packets sent",
     {"device", "port"}},
    {"class/infiniband/*/ports/*/hw_counters/rp_cnp_handled",
     "rocefs_device_cnp_handled_total",
     "counter",
     "congestion notification packets that slowed a queue pair",
     {"device", "port"}},
    {"class/infiniband/*/ports/*/hw_counters/packet_seq_err",
     "rocefs_device_sequence_errors_total",
     "counter",
     "NAKs of a missing packet received",
     {"device", "port"}},
    {"class/infiniband/*/ports/*/hw_counters/local_ack_timeout_err",
     "rocefs_device_timeouts_total",
     "counter",
     "acknowledgements that did not come in time",
     {"device", "port"}},
    {"class/infiniband/*/ports/*/hw_counters/out_of_sequence",
     "rocefs_device_out_of_sequence_total",
     "counter",
     "packets that came out of order",
     {"device", "port"}},
};
#undef ROCEFS_PORT
#undef ROCEFS_FILES

std::vector<std::string> metric_patterns() {
  std::vector<std::string> patterns;
  for (const MetricRow& row : kMetrics) patterns.emplace_back(row.pattern);
  return patterns;
}

// Labels of a path that matches the row, in braces; empty without labels, nullopt for another path.
std::optional<std::string> labels_of(const MetricRow& row, std::string_view path) {
  const std::optional<std::vector<std::string_view>> stars = stars_of(row.pattern, path);
  if (!stars) return std::nullopt;
  std::string labels;
  for (size_t i = 0; i < stars->size(); ++i) {
    // Names of the tree have no quotes and no backslashes.
    labels += fmt::format("{}{}=\"{}\"", i ? "," : "", row.labels[i], (*stars)[i]);
  }
  return labels.empty() ? labels : "{" + labels + "}";
}

std::optional<double> number_of(Meaning meaning, std::string_view text) {
  if (meaning == Meaning::kUp) return text == "up" ? 1 : 0;
  if (meaning == Meaning::kRate || meaning == Meaning::kSize) {
    auto number = meaning == Meaning::kRate ? parse_rate(text) : parse_size(text);
    if (!number) return std::nullopt;
    // Prometheus counts octets.
    return static_cast<double>(*number) / (meaning == Meaning::kRate ? 8 : 1);
  }
  const std::string digits(text);
  char* end = nullptr;
  const double number = std::strtod(digits.c_str(), &end);
  if (end == digits.c_str()) return std::nullopt;
  return meaning == Meaning::kNanoseconds ? number / 1e9 : number;
}

}  // namespace

Metrics::Metrics(const MountFiles& files) : getter_(files, metric_patterns()) {}

Result<std::string> Metrics::scrape() {
  std::lock_guard lock(mutex_);
  if (Result<void> looked = getter_.look(); !looked) return looked.error();
  std::string text;
  std::set<std::string> used;  // labels of queues
  const MetricRow* row = kMetrics;
  const MetricRow* described = nullptr;
  for (const Looks::Line& line : getter_.lines()) {
    const std::vector<std::string_view> path = split(line.path, "/");
    std::optional<std::string> labels;
    // Lines come in the order of the rows.
    while (row != std::end(kMetrics) && !(labels = labels_of(*row, line.path))) ++row;
    if (row == std::end(kMetrics)) break;
    const std::optional<double> number = number_of(row->meaning, line.text);
    if (!number) continue;
    // The peak, which comes first, tells which queues were used.
    const bool queue = path.size() > 7 && (path[7] == "queue" || path[7] == "pfc");
    if (queue && path.back() == "peak" && *number > 0) used.insert(*labels);
    if (queue && path[7] == "queue" && !used.contains(*labels)) continue;
    if (queue && path[7] == "pfc" && *number == 0 && !used.contains(*labels)) continue;
    if (described != row) {
      described = row;
      text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", row->name, row->help, row->type);
    }
    text += fmt::format("{}{} {}\n", row->name, *labels, *number);
  }
  return text;
}

}  // namespace rocefs
