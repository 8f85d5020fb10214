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

using Words = std::string_view;
using TextOf = std::string (*)(const Facts&);
using NumberOf = Number (*)(const Facts&);

constexpr Column text_column(Words name, Words title, uint8_t width, uint8_t importance, Words csv,
                             Mood mood, TextOf text) {
  return {name,        title, {}, width, importance, Unit::kNone,
          Unit::kNone, csv,   {}, mood,  nullptr,    text};
}
constexpr Column value_column(Words name, Words title, uint8_t width, uint8_t importance, Unit unit,
                              Words csv, Mood mood, NumberOf number) {
  return {name, title, {}, width, importance, unit, Unit::kNone, csv, {}, mood, number};
}
constexpr Column octets_column(Words name, Words title, Words count_title, uint8_t width,
                               uint8_t importance, Words csv, Words csv_count, NumberOf number) {
  return {name,          title, count_title, width,        importance, Unit::kOctetsPerS,
          Unit::kOctets, csv,   csv_count,   Mood::kPlain, number,     nullptr,
          true};
}
constexpr Column events_column(Words name, Words title, Words count_title, uint8_t width,
                               uint8_t importance, Words csv, Words csv_count, Mood mood,
                               NumberOf number) {
  return {name,      title, count_title, width,   importance, Unit::kPerSecond, Unit::kCount, csv,
          csv_count, mood,  number,      nullptr, true};
}
constexpr Column load_column(uint8_t width, uint8_t importance, bool bar, NumberOf number) {
  return {"load",         "LOAD", {},           width,  importance, Unit::kPercent, Unit::kNone,
          "load_percent", {},     Mood::kPlain, number, nullptr,    true,           bar};
}

constexpr Column kDeviceColumns[] = {
    text_column("name", "DEVICE", 12, 0, "device", Mood::kPlain, port_name),
    text_column("state", "STATE", 7, 1, "state", Mood::kQuiet, port_state),
    octets_column("out", "OUT", "OUT", 10, 1, "out_octets_per_s", "out_octets", data_of<kXmitData>),
    octets_column("in", "IN", "IN", 10, 1, "in_octets_per_s", "in_octets", data_of<kRcvData>),
    events_column("out_packets", "PKT/s>", "PKTS>", 7, 2, "out_packets_per_s", "out_packets",
                  Mood::kPlain, count_of<kXmitPackets>),
    events_column("in_packets", "PKT/s<", "PKTS<", 7, 3, "in_packets_per_s", "in_packets",
                  Mood::kPlain, count_of<kRcvPackets>),
    events_column("cnps_sent", "CNP/s>", "CNPS>", 7, 2, "cnps_sent_per_s", "cnps_sent",
                  Mood::kNotable, count_of<kCnpSent>),
    events_column("cnps_handled", "CNP/s<", "CNPS<", 7, 2, "cnps_handled_per_s", "cnps_handled",
                  Mood::kNotable, count_of<kCnpHandled>),
    events_column("retransmissions", "RETX/s", "RETX", 7, 2, "retransmissions_per_s",
                  "retransmissions", Mood::kBad, retransmitted),
    events_column("out_of_order", "OOO/s", "OOO", 6, 2, "out_of_order_per_s", "out_of_order",
                  Mood::kNotable, count_of<kOutOfSequence>),
    load_column(8, 4, false, port_load),
    events_column("marked", "MARKED/s", "MARKED", 9, 5, "marked_received_per_s", "marked_received",
                  Mood::kNotable, count_of<kEcnReceived>),
    events_column("timeouts", "TIMEOUT/s", "TIMEOUTS", 10, 5, "timeouts_per_s", "timeouts",
                  Mood::kBad, count_of<kTimeouts>),
    events_column("naks", "NAK/s", "NAKS", 8, 6, "sequence_naks_per_s", "sequence_naks", Mood::kBad,
                  count_of<kNaks>),
    events_column("duplicates", "DUP/s", "DUPS", 8, 7, "duplicates_per_s", "duplicates",
                  Mood::kNotable, count_of<kDuplicates>),
    events_column("discards", "DISCARD/s", "DISCARDS", 10, 6, "discards_per_s", "discards",
                  Mood::kBad, count_of<kXmitDiscards>),
    value_column("wait", "PAUSED FOR", 11, 6, Unit::kNanoseconds, "wait_ns", Mood::kNotable,
                 count_of<kXmitWait>),
};

constexpr Column kLinkColumns[] = {
    text_column("name", "LINK", 16, 0, "link", Mood::kPlain,
                [](const Facts& facts) { return facts.record.key; }),
    text_column("state", "STATE", 6, 1, "state", Mood::kQuiet, text_of<kLinkState>),
    load_column(8, 1, true, load_of),
    value_column("rate", "RATE", 9, 2, Unit::kBitsPerS, "rate_bps", Mood::kQuiet,
                 [](const Facts& facts) { return facts.record.rate(kLinkRate); }),
    octets_column("out", "SENT", "SENT", 10, 1, "octets_per_s", "octets", count_of<kLinkBytes>),
    events_column("packets", "PKT/s", "PKTS", 7, 3, "packets_per_s", "packets", Mood::kPlain,
                  count_of<kLinkPackets>),
    events_column("lost", "LOST/s", "LOST", 8, 1, "lost_per_s", "lost", Mood::kBad,
                  count_of<kLost>),
    events_column("dropped", "DROP/s", "DROPPED", 8, 2, "dropped_per_s", "dropped", Mood::kBad,
                  count_of<kOverflowed>),
    value_column("all_lost", "ALL LOST", 10, 4, Unit::kCount, "", Mood::kBad, count_of<kLost>),
    value_column("all_sent", "ALL SENT", 10, 4, Unit::kOctets, "", Mood::kPlain,
                 count_of<kLinkBytes>),
};

constexpr Column kQueueColumns[] = {
    text_column("name", "SWITCH", 10, 0, "switch", Mood::kPlain, key_part<0>),
    value_column("port", "PORT", 5, 0, Unit::kCount, "port", Mood::kPlain,
                 [](const Facts& facts) {
                   return Record{"", {key_part<1>(facts)}}.number(0);
                 }),
    value_column("priority", "PRIO", 5, 0, Unit::kCount, "priority", Mood::kPlain,
                 [](const Facts& facts) {
                   return Record{"", {key_part<2>(facts)}}.number(0);
                 }),
    text_column("to", "TO", 9, 2, "to", Mood::kPlain, far_end),
    value_column("octets", "QUEUED", 10, 1, Unit::kOctets, "octets", Mood::kGood,
                 count_of<kQueued>),
    value_column("packets", "PKTS", 7, 3, Unit::kCount, "packets", Mood::kPlain,
                 count_of<kQueuedPackets>),
    value_column("peak", "PEAK", 10, 2, Unit::kOctets, "peak_octets", Mood::kPlain,
                 count_of<kPeak>),
    events_column("marked", "MARKED/s", "MARKED", 9, 1, "marked_per_s", "marked", Mood::kNotable,
                  count_of<kMarked>),
    events_column("dropped", "DROP/s", "DROPPED", 8, 1, "dropped_per_s", "dropped", Mood::kBad,
                  count_of<kDropped>),
    text_column("paused", "PAUSED", 7, 1, "paused", Mood::kBad, paused_text),
    value_column("paused_for", "PAUSED FOR", 11, 5, Unit::kNanoseconds, "paused_ns", Mood::kNotable,
                 count_of<kPausedNs>),
    events_column("pauses_received", "PAUSE/s<", "PAUSES<", 9, 4, "pauses_received_per_s",
                  "pauses_received", Mood::kNotable, count_of<kPauseReceived>),
    events_column("pauses_sent", "PAUSE/s>", "PAUSES>", 9, 4, "pauses_sent_per_s", "pauses_sent",
                  Mood::kNotable, count_of<kPauseSent>),
    value_column("all_dropped", "ALL DROPPED", 12, 6, Unit::kCount, "", Mood::kBad,
                 count_of<kDropped>),
};

constexpr Column kFlowColumns[] = {
    text_column("name", "NAME", 14, 0, "name", Mood::kPlain, key_part<1>),
    text_column("kind", "KIND", 5, 3, "kind", Mood::kQuiet, flow_kind),
    text_column("state", "STATE", 11, 1, "state", Mood::kPlain, text_of<kFlowState>),
    octets_column("throughput", "GOODPUT", "MOVED", 10, 1, "octets_per_s", "octets",
                  result_of<kBytes>),
    value_column("rate", "RATE", 10, 2, Unit::kBitsPerS, "rate_bps", Mood::kPlain,
                 count_of<kFlowRate>),
    value_column("window", "WINDOW", 9, 2, Unit::kOctets, "window_octets", Mood::kPlain, window_of),
    events_column("retransmitted", "RETX/s", "RETX", 7, 2, "retransmitted_per_s", "retransmitted",
                  Mood::kBad, result_of<kRetransmitted>),
    events_column("cnps", "CNP/s", "CNPS", 7, 2, "cnps_per_s", "cnps", Mood::kNotable,
                  result_of<kCnps>),
    value_column("done", "DONE", 7, 2, Unit::kCount, "flows_done", Mood::kGood, result_of<kDone>),
    value_column("failed", "FAILED", 8, 4, Unit::kCount, "flows_failed", Mood::kBad,
                 result_of<kFailed>),
    value_column("started", "STARTED", 8, 5, Unit::kCount, "flows_started", Mood::kPlain,
                 result_of<kStarted>),
    value_column("moved", "ALL MOVED", 10, 4, Unit::kOctets, "", Mood::kPlain, result_of<kBytes>),
    events_column("packets", "PKT/s", "PKTS", 8, 5, "packets_per_s", "packets", Mood::kPlain,
                  result_of<kPackets>),
    value_column("timeouts", "TIMEOUTS", 9, 5, Unit::kCount, "timeouts", Mood::kBad,
                 result_of<kTimedOut>),
    value_column("elapsed", "ELAPSED", 10, 4, Unit::kNanoseconds, "elapsed_ns", Mood::kPlain,
                 result_of<kElapsed>),
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
