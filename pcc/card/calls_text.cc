#include "pcc/card/calls_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <limits>

#include "core/base/text.h"
#include "pcc/api/algorithm.h"

namespace rocefs {
namespace {

constexpr std::pair<std::string_view, uint16_t> kEvents[] = {
    {"ack", ROCEFS_QP_ACK}, {"nack", ROCEFS_QP_NACK}, {"timeout", ROCEFS_QP_TIMEOUT}};

std::string_view name_of_event(uint16_t kind) {
  for (auto [name, number] : kEvents) {
    if (number == kind) return name;
  }
  return "?";
}

// Columns, in the order of the header.
enum Column : size_t {
  kTime,
  kQp,
  kGeneration,
  kEvent,
  kAlgorithm,
  kCall,
  kDue,
  kOldWindow,
  kNewWindow,
  kRate,
  kLine,
  kCnps,
  kRtt,
  kRttNew,
  kProbe,
  kActive,
  kBytes,
  kAcked,
  kSent,
  kMarked,
  kWay,
  kHops,
  kColumns
};
constexpr auto kNames = [] {
  std::array<std::string_view, kColumns> names;
  std::string_view rest = kCallsHeader;
  for (std::string_view& name : names) {
    name = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
  }
  return names;
}();
static_assert(kNames[kHops] == "hops");

// Splits at each separator; false if there are not exactly so many parts.
template <size_t kParts>
bool split_into(std::string_view text, char separator, std::array<std::string_view, kParts>& to) {
  for (size_t i = 0; i < kParts; ++i) {
    size_t end = text.find(separator);
    if ((end == text.npos) != (i + 1 == kParts)) return false;
    to[i] = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), to[i].size() + 1));
  }
  return true;
}

// As add_line() writes it: nothing but digits, no zero in front.
bool parse_number(std::string_view text, uint64_t most, uint64_t& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  bool plain = !text.starts_with('0') || text.size() == 1;
  return error == std::errc() && end == text.data() + text.size() && plain && number <= most;
}

// Fields of a line. Keeps the first failure.
class Fields {
 public:
  static constexpr uint64_t kMost32 = std::numeric_limits<uint32_t>::max();

  explicit Fields(std::string_view line) {
    if (!split_into(line, ',', fields_)) fail(errorf(EINVAL, "not {} fields", size_t{kColumns}));
  }
  std::string_view text(Column column) const { return fields_[column]; }
  uint64_t number(Column column, uint64_t most, uint64_t least = 0) {
    uint64_t number = 0;
    if (!parse_number(fields_[column], most, number) || number < least) wrong(column);
    return number;
  }
  uint32_t number32(Column column) { return static_cast<uint32_t>(number(column, kMost32)); }
  uint16_t flag(Column column, uint16_t bit) { return number(column, 1) ? bit : uint16_t{0}; }
  void expect_none(Column first, Column last) {
    for (size_t i = first; i <= last; ++i) {
      if (!fields_[i].empty()) wrong(static_cast<Column>(i));
    }
  }
  void wrong(Column column) {
    fail(errorf(EINVAL, "{}: '{}'", kNames[column],
                in_one_line(std::string(fields_[column].substr(0, kShown)))));
  }
  Result<void> outcome() const { return outcome_; }

 private:
  static constexpr size_t kShown = 40;

  void fail(Error error) {
    if (outcome_) outcome_ = std::move(error);
  }

  std::array<std::string_view, kColumns> fields_{};
  Result<void> outcome_;
};

constexpr uint64_t kLatest = uint64_t{1} << 62;  // so that sums of times do not overflow

// Members that calls and events have in common.
template <class Entry>
void read_start(Fields& fields, Entry& entry) {
  entry.at_ns = fields.number(kTime, kLatest);
  entry.qpn = static_cast<uint32_t>(
      fields.number(kQp, ROCEFS_FIRST_QPN + ROCEFS_MAX_QPS - 1, ROCEFS_FIRST_QPN));
  entry.generation = fields.number32(kGeneration);
}

rocefs_qp_call read_call(Fields& fields) {
  rocefs_qp_call call{};
  read_start(fields, call);
  call.kind = ROCEFS_QP_CALL;
  std::string_view name = fields.text(kAlgorithm);
  if (!name.empty() && !valid_algorithm_name(name)) fields.wrong(kAlgorithm);
  call.number = static_cast<uint32_t>(fields.number(kCall, Fields::kMost32, 1));
  call.flags = fields.flag(kDue, ROCEFS_CALL_DUE) | fields.flag(kRttNew, ROCEFS_CALL_RTT) |
               fields.flag(kProbe, ROCEFS_CALL_PROBE);
  call.old_window = fields.number32(kOldWindow);
  call.new_window = fields.number32(kNewWindow);
  call.rate_bps = fields.number(kRate, ~uint64_t{0});
  call.line_bps = fields.number(kLine, ~uint64_t{0});
  call.cnps = fields.number32(kCnps);
  call.rtt_ns = fields.number(kRtt, ~uint64_t{0});
  call.active = fields.number32(kActive);
  fields.expect_none(kBytes, kHops);
  return call;
}

bool read_hop(std::string_view text, rocefs_qp_hop& hop) {
  std::array<std::string_view, 4> parts;
  if (!split_into(text, ':', parts)) return false;
  uint32_t* const to[] = {&hop.queue, &hop.sent, &hop.time_ns, &hop.rate_mbps};
  for (size_t i = 0; i < parts.size(); ++i) {
    uint64_t number = 0;
    if (!parse_number(parts[i], Fields::kMost32, number)) return false;
    *to[i] = static_cast<uint32_t>(number);
  }
  return true;
}

void read_hops(Fields& fields, rocefs_qp_event& event) {
  std::string_view rest = fields.text(kHops);
  while (!rest.empty()) {
    std::string_view hop = rest.substr(0, rest.find(' '));
    const bool more = hop.size() < rest.size();
    rest.remove_prefix(hop.size() + (more ? 1 : 0));
    const bool full = event.hops == ROCEFS_MAX_HOPS;
    if (uint64_t missed = 0; full && !more && hop.starts_with('+') &&
                             parse_number(hop.substr(1), 255 - ROCEFS_MAX_HOPS, missed) && missed) {
      event.hops = static_cast<uint8_t>(event.hops + missed);
      return;
    }
    if (full || !read_hop(hop, event.hop[event.hops]) || (more && rest.empty())) {
      return fields.wrong(kHops);
    }
    ++event.hops;
  }
}

rocefs_qp_event read_event(Fields& fields, uint16_t kind) {
  rocefs_qp_event event{};
  read_start(fields, event);
  event.kind = kind;
  fields.expect_none(kAlgorithm, kCnps);
  event.rtt_ns = fields.number32(kRtt);
  fields.expect_none(kRttNew, kActive);
  event.bytes = fields.number32(kBytes);
  event.acked = fields.number(kAcked, ~uint64_t{0});
  event.sent = fields.number(kSent, ~uint64_t{0});
  event.marked = static_cast<uint8_t>(fields.number(kMarked, 255));
  event.way = fields.number32(kWay);
  read_hops(fields, event);
  return event;
}

}  // namespace

void add_line(std::string& text, const rocefs_qp_call& call, std::string_view algorithm) {
  auto flag = [&](uint16_t bit) { return call.flags & bit ? 1 : 0; };
  fmt::format_to(std::back_inserter(text),
                 "{},{},{},call,{},{},{},{},{},{},{},{},{},{},{},{},,,,,,\n", call.at_ns, call.qpn,
                 call.generation, algorithm, call.number, flag(ROCEFS_CALL_DUE), call.old_window,
                 call.new_window, call.rate_bps, call.line_bps, call.cnps, call.rtt_ns,
                 flag(ROCEFS_CALL_RTT), flag(ROCEFS_CALL_PROBE), call.active);
}

void add_line(std::string& text, const rocefs_qp_event& event) {
  fmt::format_to(std::back_inserter(text), "{},{},{},{},,,,,,,,,{},,,,{},{},{},{},{},", event.at_ns,
                 event.qpn, event.generation, name_of_event(event.kind), event.rtt_ns, event.bytes,
                 event.acked, event.sent, event.marked, event.way);
  for (size_t i = 0; i < std::min<size_t>(event.hops, ROCEFS_MAX_HOPS); ++i) {
    const rocefs_qp_hop& hop = event.hop[i];
    fmt::format_to(std::back_inserter(text), "{}{}:{}:{}:{}", i > 0 ? " " : "", hop.queue, hop.sent,
                   hop.time_ns, hop.rate_mbps);
  }
  if (event.hops > ROCEFS_MAX_HOPS) {
    fmt::format_to(std::back_inserter(text), " +{}", event.hops - ROCEFS_MAX_HOPS);
  }
  text += '\n';
}

std::string lost_lines(uint64_t count) {
  return fmt::format("# {} lines are lost\n", count);
}

Result<CallsLine> parse_calls_line(std::string_view line) {
  if (line.starts_with("# ") && line.ends_with(" lines are lost")) {
    return Error{ENODATA, "lines of the recording are lost: it was read too late"};
  }
  Fields fields(line);
  if (Result<void> split = fields.outcome(); !split) return split.error();
  const std::string_view what = fields.text(kEvent);
  auto kind = std::find_if(std::begin(kEvents), std::end(kEvents),
                           [&](const auto& event) { return event.first == what; });
  CallsLine read;
  if (what == "call") {
    read = read_call(fields);
  } else if (kind != std::end(kEvents)) {
    read = read_event(fields, kind->second);
  } else {
    fields.wrong(kEvent);
  }
  if (Result<void> outcome = fields.outcome(); !outcome) return outcome.error();
  return read;
}

void CallsReader::add(std::string_view piece) {
  text_.erase(0, begin_);
  begin_ = 0;
  text_ += piece;
}

Result<std::optional<CallsLine>> CallsReader::next() {
  for (;;) {
    std::string_view rest = std::string_view(text_).substr(begin_);
    const size_t end = rest.find('\n');
    if (std::min(end, rest.size()) > kMaxLine) {
      return errorf(EINVAL, "line {} is longer than {} octets", line_ + 1, kMaxLine);
    }
    if (end == rest.npos) return std::optional<CallsLine>();
    ++line_;
    begin_ += end + 1;
    const std::string_view line = rest.substr(0, end);
    if (line_ == 1) {
      if (line == kCallsHeader) continue;
      return Error{EINVAL, "line 1 is not the header of recorded calls"};
    }
    Result<CallsLine> read = parse_calls_line(line);
    if (!read) return errorf(read.error().code, "line {}: {}", line_, read.error().reason);
    return std::optional(*read);
  }
}

Result<void> CallsReader::end() const {
  if (begin_ < text_.size()) return errorf(EINVAL, "line {} is cut off", line_ + 1);
  if (line_ == 0) return Error{EINVAL, "it is empty"};
  return {};
}

}  // namespace rocefs
