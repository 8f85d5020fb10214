#include "tools/rocefs-top/columns.h"

#include <algorithm>

#include "core/base/text.h"

namespace rocefs::top {
namespace {

using Number = std::optional<double>;

constexpr double kEthernetOverhead = 38;  // octets of header, FCS, preamble and gap of a packet

template <size_t kFile>
Number count_of(const Facts& facts) {
  return facts.record.number(kFile);
}
template <size_t kFile>
std::string text_of(const Facts& facts) {
  return facts.record.texts[kFile];
}
// Ports count data in units of 4 octets.
template <size_t kFile>
Number data_of(const Facts& facts) {
  const Number words = facts.record.number(kFile);
  return words ? Number(*words * 4) : words;
}
Number sum_of(Number one, Number other) {
  return one && other ? Number(*one + *other) : std::nullopt;
}
template <size_t kPart>
std::string key_part(const Facts& facts) {
  const auto parts = split(facts.record.key, "/");
  return kPart < parts.size() ? std::string(parts[kPart]) : std::string();
}

// "mb_0", and "mb_0/2" of another port than the first.
std::string port_name(const Facts& facts) {
  const std::string& key = facts.record.key;
  return key.ends_with("/1") ? key.substr(0, key.size() - 2) : key;
}
// "4: ACTIVE" without its number.
std::string port_state(const Facts& facts) {
  const std::string& text = facts.record.texts[kPortState];
  const size_t colon = text.find(": ");
  return colon == text.npos ? text : text.substr(colon + 2);
}
Number retransmitted(const Facts& facts) {
  return sum_of(facts.record.number(kSelective),
                sum_of(facts.record.number(kNaks), facts.record.number(kTimeouts)));
}

// Share of a link's rate, as a count of percent times seconds.
Number share_of_rate(Number octets, const Record* link) {
  const double rate = link ? link->rate(kLinkRate).value_or(0) : 0;
  if (!octets || rate == 0) return std::nullopt;
  return *octets * 8 / rate * 100;
}
Number load_of(const Facts& facts) {
  return share_of_rate(octets_on_wire(facts.record), &facts.newest);
}
Number port_load(const Facts& facts) {
  auto link = facts.look.out_links.find(facts.record.key);
  if (link == facts.look.out_links.end()) return std::nullopt;
  const Number packets = facts.record.number(kXmitPackets);
  const double framing = packets.value_or(0) * kEthernetOverhead;
  return share_of_rate(sum_of(data_of<kXmitData>(facts), framing),
                       facts.look.find(Screen::kLinks, link->second));
}

std::string far_end(const Facts& facts) {
  const std::string& key = facts.record.key;
  auto found = facts.look.far_ends.find(key.substr(0, key.rfind('/')));
  return found == facts.look.far_ends.end() ? std::string() : found->second;
}
std::string paused_text(const Facts& facts) {
  return facts.record.texts[kPaused] == "1" ? "PAUSED" : "";
}

bool is_load(const Record& record) {
  return record.key.starts_with("loads/");
}
std::string flow_kind(const Facts& facts) {
  return is_load(facts.record) ? "load" : "flow";
}
template <const char* kKey>
Number result_of(const Facts& facts) {
  return result_value(facts.record.texts[kFlowResult], kKey);
}
constexpr char kBytes[] = "bytes", kPackets[] = "packets", kRetransmitted[] = "retransmitted",
               kCnps[] = "cnps", kTimedOut[] = "timeouts", kElapsed[] = "elapsed_ns",
               kDone[] = "done", kFailed[] = "failed", kStarted[] = "started";
// Without a limit the file says 2^32 - 1.
Number window_of(const Facts& facts) {
  const Number window = facts.record.number(kFlowWindow);
  return window == 4294967295.0 ? std::nullopt : window;
}

constexpr Column kDeviceColumns[] = {
    {"name",
     "DEVICE",
     "",
     12,
     0,
     Unit::kNone,
     Unit::kNone,
     "device",
     {},
     Mood::kPlain,
     nullptr,
     port_name},
    {"state",
     "STATE",
     "",
     7,
     1,
     Unit::kNone,
     Unit::kNone,
     "state",
     {},
     Mood::kQuiet,
     nullptr,
     port_state},
    {"out", "OUT", "OUT", 10, 1, Unit::kOctetsPerS, Unit::kOctets, "out_octets_per_s", "out_octets",
     Mood::kPlain, data_of<kXmitData>, nullptr, true},
    {"in", "IN", "IN", 10, 1, Unit::kOctetsPerS, Unit::kOctets, "in_octets_per_s", "in_octets",
     Mood::kPlain, data_of<kRcvData>, nullptr, true},
    {"out_packets", "PKT/s>", "PKTS>", 7, 2, Unit::kPerSecond, Unit::kCount, "out_packets_per_s",
     "out_packets", Mood::kPlain, count_of<kXmitPackets>, nullptr, true},
    {"in_packets", "PKT/s<", "PKTS<", 7, 3, Unit::kPerSecond, Unit::kCount, "in_packets_per_s",
     "in_packets", Mood::kPlain, count_of<kRcvPackets>, nullptr, true},
    {"cnps_sent", "CNP/s>", "CNPS>", 7, 2, Unit::kPerSecond, Unit::kCount, "cnps_sent_per_s",
     "cnps_sent", Mood::kNotable, count_of<kCnpSent>, nullptr, true},
    {"cnps_handled", "CNP/s<", "CNPS<", 7, 2, Unit::kPerSecond, Unit::kCount, "cnps_handled_per_s",
     "cnps_handled", Mood::kNotable, count_of<kCnpHandled>, nullptr, true},
    {"retransmissions", "RETX/s", "RETX", 7, 2, Unit::kPerSecond, Unit::kCount,
     "retransmissions_per_s", "retransmissions", Mood::kBad, retransmitted, nullptr, true},
    {"out_of_order", "OOO/s", "OOO", 6, 2, Unit::kPerSecond, Unit::kCount, "out_of_order_per_s",
     "out_of_order", Mood::kNotable, count_of<kOutOfSequence>, nullptr, true},
    {"load",
     "LOAD",
     "",
     8,
     4,
     Unit::kPercent,
     Unit::kNone,
     "load_percent",
     {},
     Mood::kPlain,
     port_load,
     nullptr,
     true},
    {"marked", "MARKED/s", "MARKED", 9, 5, Unit::kPerSecond, Unit::kCount, "marked_received_per_s",
     "marked_received", Mood::kNotable, count_of<kEcnReceived>, nullptr, true},
    {"timeouts", "TIMEOUT/s", "TIMEOUTS", 10, 5, Unit::kPerSecond, Unit::kCount, "timeouts_per_s",
     "timeouts", Mood::kBad, count_of<kTimeouts>, nullptr, true},
    {"naks", "NAK/s", "NAKS", 8, 6, Unit::kPerSecond, Unit::kCount, "sequence_naks_per_s",
     "sequence_naks", Mood::kBad, count_of<kNaks>, nullptr, true},
    {"duplicates", "DUP/s", "DUPS", 8, 7, Unit::kPerSecond, Unit::kCount, "duplicates_per_s",
     "duplicates", Mood::kNotable, count_of<kDuplicates>, nullptr, true},
    {"discards", "DISCARD/s", "DISCARDS", 10, 6, Unit::kPerSecond, Unit::kCount, "discards_per_s",
     "discards", Mood::kBad, count_of<kXmitDiscards>, nullptr, true},
    {"wait",
     "PAUSED FOR",
     "",
     11,
     6,
     Unit::kNanoseconds,
     Unit::kNone,
     "wait_ns",
     {},
     Mood::kNotable,
     count_of<kXmitWait>},
};

constexpr Column kLinkColumns[] = {
    {"name",
     "LINK",
     "",
     16,
     0,
     Unit::kNone,
     Unit::kNone,
     "link",
     {},
     Mood::kPlain,
     nullptr,
     [](const Facts& facts) { return facts.record.key; }},
    {"state",
     "STATE",
     "",
     6,
     1,
     Unit::kNone,
     Unit::kNone,
     "state",
     {},
     Mood::kQuiet,
     nullptr,
     text_of<kLinkState>},
    {"load",
     "LOAD",
     "",
     8,
     1,
     Unit::kPercent,
     Unit::kNone,
     "load_percent",
     {},
     Mood::kPlain,
     load_of,
     nullptr,
     true,
     true},
    {"rate",
     "RATE",
     "",
     9,
     2,
     Unit::kBitsPerS,
     Unit::kNone,
     "rate_bps",
     {},
     Mood::kQuiet,
     [](const Facts& facts) { return facts.record.rate(kLinkRate); }},
    {"out", "SENT", "SENT", 10, 1, Unit::kOctetsPerS, Unit::kOctets, "octets_per_s", "octets",
     Mood::kPlain, count_of<kLinkBytes>, nullptr, true},
    {"packets", "PKT/s", "PKTS", 7, 3, Unit::kPerSecond, Unit::kCount, "packets_per_s", "packets",
     Mood::kPlain, count_of<kLinkPackets>, nullptr, true},
    {"lost", "LOST/s", "LOST", 8, 1, Unit::kPerSecond, Unit::kCount, "lost_per_s", "lost",
     Mood::kBad, count_of<kLost>, nullptr, true},
    {"dropped", "DROP/s", "DROPPED", 8, 2, Unit::kPerSecond, Unit::kCount, "dropped_per_s",
     "dropped", Mood::kBad, count_of<kOverflowed>, nullptr, true},
    {"all_lost",
     "ALL LOST",
     "",
     10,
     4,
     Unit::kCount,
     Unit::kNone,
     {},
     {},
     Mood::kBad,
     count_of<kLost>},
    {"all_sent",
     "ALL SENT",
     "",
     10,
     4,
     Unit::kOctets,
     Unit::kNone,
     {},
     {},
     Mood::kPlain,
     count_of<kLinkBytes>},
};

constexpr Column kQueueColumns[] = {
    {"name",
     "SWITCH",
     "",
     10,
     0,
     Unit::kNone,
     Unit::kNone,
     "switch",
     {},
     Mood::kPlain,
     nullptr,
     key_part<0>},
    {"port",
     "PORT",
     "",
     5,
     0,
     Unit::kCount,
     Unit::kNone,
     "port",
     {},
     Mood::kPlain,
     [](const Facts& facts) {
       return Record{"", {key_part<1>(facts)}}.number(0);
     }},
    {"priority",
     "PRIO",
     "",
     5,
     0,
     Unit::kCount,
     Unit::kNone,
     "priority",
     {},
     Mood::kPlain,
     [](const Facts& facts) {
       return Record{"", {key_part<2>(facts)}}.number(0);
     }},
    {"to", "TO", "", 9, 2, Unit::kNone, Unit::kNone, "to", {}, Mood::kPlain, nullptr, far_end},
    {"octets",
     "QUEUED",
     "",
     10,
     1,
     Unit::kOctets,
     Unit::kNone,
     "octets",
     {},
     Mood::kGood,
     count_of<kQueued>},
    {"packets",
     "PKTS",
     "",
     7,
     3,
     Unit::kCount,
     Unit::kNone,
     "packets",
     {},
     Mood::kPlain,
     count_of<kQueuedPackets>},
    {"peak",
     "PEAK",
     "",
     10,
     2,
     Unit::kOctets,
     Unit::kNone,
     "peak_octets",
     {},
     Mood::kPlain,
     count_of<kPeak>},
    {"marked", "MARKED/s", "MARKED", 9, 1, Unit::kPerSecond, Unit::kCount, "marked_per_s", "marked",
     Mood::kNotable, count_of<kMarked>, nullptr, true},
    {"dropped", "DROP/s", "DROPPED", 8, 1, Unit::kPerSecond, Unit::kCount, "dropped_per_s",
     "dropped", Mood::kBad, count_of<kDropped>, nullptr, true},
    {"paused",
     "PAUSED",
     "",
     7,
     1,
     Unit::kNone,
     Unit::kNone,
     "paused",
     {},
     Mood::kBad,
     nullptr,
     paused_text},
    {"paused_for",
     "PAUSED FOR",
     "",
     11,
     5,
     Unit::kNanoseconds,
     Unit::kNone,
     "paused_ns",
     {},
     Mood::kNotable,
     count_of<kPausedNs>},
    {"pauses_received", "PAUSE/s<", "PAUSES<", 9, 4, Unit::kPerSecond, Unit::kCount,
     "pauses_received_per_s", "pauses_received", Mood::kNotable, count_of<kPauseReceived>, nullptr,
     true},
    {"pauses_sent", "PAUSE/s>", "PAUSES>", 9, 4, Unit::kPerSecond, Unit::kCount,
     "pauses_sent_per_s", "pauses_sent", Mood::kNotable, count_of<kPauseSent>, nullptr, true},
    {"all_dropped",
     "ALL DROPPED",
     "",
     12,
     6,
     Unit::kCount,
     Unit::kNone,
     {},
     {},
     Mood::kBad,
     count_of<kDropped>},
};

constexpr Column kFlowColumns[] = {
    {"name",
     "NAME",
     "",
     14,
     0,
     Unit::kNone,
     Unit::kNone,
     "name",
     {},
     Mood::kPlain,
     nullptr,
     key_part<1>},
    {"kind",
     "KIND",
     "",
     5,
     3,
     Unit::kNone,
     Unit::kNone,
     "kind",
     {},
     Mood::kQuiet,
     nullptr,
     flow_kind},
    {"state",
     "STATE",
     "",
     11,
     1,
     Unit::kNone,
     Unit::kNone,
     "state",
     {},
     Mood::kPlain,
     nullptr,
     text_of<kFlowState>},
    {"throughput", "GOODPUT", "MOVED", 10, 1, Unit::kOctetsPerS, Unit::kOctets, "octets_per_s",
     "octets", Mood::kPlain, result_of<kBytes>, nullptr, true},
    {"rate",
     "RATE",
     "",
     10,
     2,
     Unit::kBitsPerS,
     Unit::kNone,
     "rate_bps",
     {},
     Mood::kPlain,
     count_of<kFlowRate>},
    {"window",
     "WINDOW",
     "",
     9,
     2,
     Unit::kOctets,
     Unit::kNone,
     "window_octets",
     {},
     Mood::kPlain,
     window_of},
    {"retransmitted", "RETX/s", "RETX", 7, 2, Unit::kPerSecond, Unit::kCount, "retransmitted_per_s",
     "retransmitted", Mood::kBad, result_of<kRetransmitted>, nullptr, true},
    {"cnps", "CNP/s", "CNPS", 7, 2, Unit::kPerSecond, Unit::kCount, "cnps_per_s", "cnps",
     Mood::kNotable, result_of<kCnps>, nullptr, true},
    {"done",
     "DONE",
     "",
     7,
     2,
     Unit::kCount,
     Unit::kNone,
     "flows_done",
     {},
     Mood::kGood,
     result_of<kDone>},
    {"failed",
     "FAILED",
     "",
     8,
     4,
     Unit::kCount,
     Unit::kNone,
     "flows_failed",
     {},
     Mood::kBad,
     result_of<kFailed>},
    {"started",
     "STARTED",
     "",
     8,
     5,
     Unit::kCount,
     Unit::kNone,
     "flows_started",
     {},
     Mood::kPlain,
     result_of<kStarted>},
    {"moved",
     "ALL MOVED",
     "",
     10,
     4,
     Unit::kOctets,
     Unit::kNone,
     {},
     {},
     Mood::kPlain,
     result_of<kBytes>},
    {"packets", "PKT/s", "PKTS", 8, 5, Unit::kPerSecond, Unit::kCount, "packets_per_s", "packets",
     Mood::kPlain, result_of<kPackets>, nullptr, true},
    {"timeouts",
     "TIMEOUTS",
     "",
     9,
     5,
     Unit::kCount,
     Unit::kNone,
     "timeouts",
     {},
     Mood::kBad,
     result_of<kTimedOut>},
    {"elapsed",
     "ELAPSED",
     "",
     10,
     4,
     Unit::kNanoseconds,
     Unit::kNone,
     "elapsed_ns",
     {},
     Mood::kPlain,
     result_of<kElapsed>},
};

constexpr std::string_view kScreenNames[kScreens] = {"devices", "links", "queues", "flows"};

}  // namespace

std::optional<double> octets_on_wire(const Record& link) {
  const Number octets = link.number(kLinkBytes), packets = link.number(kLinkPackets);
  return octets && packets ? Number(*octets + *packets * kEthernetOverhead) : std::nullopt;
}

std::span<const Column> columns_of(Screen screen) {
  switch (screen) {
    case Screen::kDevices:
      return kDeviceColumns;
    case Screen::kLinks:
      return kLinkColumns;
    case Screen::kQueues:
      return kQueueColumns;
    case Screen::kFlows:
      return kFlowColumns;
  }
  return {};
}

std::string_view name_of(Screen screen) {
  return kScreenNames[static_cast<size_t>(screen)];
}

std::optional<Screen> screen_named(std::string_view name) {
  for (size_t i = 0; i < kScreens; ++i) {
    if (kScreenNames[i] == name) return static_cast<Screen>(i);
  }
  return std::nullopt;
}

std::optional<size_t> column_named(Screen screen, std::string_view name) {
  const auto columns = columns_of(screen);
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const Column& column) { return column.name == name; });
  if (found == columns.end()) return std::nullopt;
  return static_cast<size_t>(found - columns.begin());
}

size_t busiest_column(Screen screen) {
  constexpr std::string_view kNames[kScreens] = {"out", "load", "octets", "throughput"};
  return *column_named(screen, kNames[static_cast<size_t>(screen)]);
}

size_t congestion_column(Screen screen) {
  constexpr std::string_view kNames[kScreens] = {"cnps_sent", "dropped", "marked", "cnps"};
  return *column_named(screen, kNames[static_cast<size_t>(screen)]);
}

}  // namespace rocefs::top
