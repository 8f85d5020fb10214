// The text of recorded calls.
#include "pcc/card/calls_text.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

using namespace rocefs;

namespace {

rocefs_qp_call some_call() {
  rocefs_qp_call call{};
  call.at_ns = 123'456'789'012;
  call.qpn = 17;
  call.generation = 3;
  call.number = 42;
  call.kind = ROCEFS_QP_CALL;
  call.flags = ROCEFS_CALL_DUE | ROCEFS_CALL_PROBE;
  call.old_window = 4096;
  call.new_window = 0xfffffffe;
  call.rate_bps = 10'000'000'000;
  call.line_bps = 100'000'000'000;
  call.cnps = 2;
  call.rtt_ns = 5'000'000'000;
  call.active = 8;
  return call;
}

rocefs_qp_event some_event(uint8_t hops) {
  rocefs_qp_event event{};
  event.at_ns = 123;
  event.qpn = 16400;
  event.generation = 0xffffffff;
  event.acked = ~uint64_t{0};
  event.sent = 5;
  event.bytes = 4096;
  event.rtt_ns = 9000;
  event.kind = ROCEFS_QP_NACK;
  event.marked = 255;
  event.way = 0xbeef;
  event.hops = hops;
  for (uint8_t i = 0; i < std::min<int>(hops, ROCEFS_MAX_HOPS); ++i) {
    event.hop[i] = {i, 1, 0xffffff, 100'000};
  }
  return event;
}

std::string shown(const rocefs_qp_call& call, std::string_view name = "aimd") {
  std::string text;
  add_line(text, call, name);
  return text;
}
std::string shown(const rocefs_qp_event& event) {
  std::string text;
  add_line(text, event);
  return text;
}
std::string_view line_of(std::string_view text) {
  return text.substr(0, text.size() - 1);
}

// Reads a text in pieces of that size; the error, or the number of lines.
Result<size_t> count(std::string_view text, size_t piece) {
  CallsReader reader;
  size_t lines = 0;
  while (!text.empty()) {
    reader.add(text.substr(0, piece));
    text.remove_prefix(std::min(piece, text.size()));
    for (;;) {
      Result<std::optional<CallsLine>> line = reader.next();
      if (!line) return line.error();
      if (!*line) break;
      ++lines;
    }
  }
  if (Result<void> end = reader.end(); !end) return end.error();
  return lines;
}

}  // namespace

TEST_CASE("calls text: what is written is read back") {
  rocefs_qp_call call = some_call();
  Result<CallsLine> line = parse_calls_line(line_of(shown(call)));
  REQUIRE(line);
  CHECK(std::memcmp(std::get_if<rocefs_qp_call>(&*line), &call, sizeof call) == 0);
  for (uint8_t hops : {0, 1, 5, 7, 255}) {
    rocefs_qp_event event = some_event(hops);
    line = parse_calls_line(line_of(shown(event)));
    REQUIRE(line);
    CHECK(std::memcmp(std::get_if<rocefs_qp_event>(&*line), &event, sizeof event) == 0);
  }
}

TEST_CASE("calls text: a field that no device writes is refused by name") {
  auto refused = [](std::string line, std::string_view what, std::string_view with) {
    size_t at = line.find(what);
    REQUIRE(at != line.npos);
    line.replace(at, what.size(), with);
    Result<CallsLine> read = parse_calls_line(line_of(line));
    REQUIRE(!read);
    CHECK(read.error().code == EINVAL);
    return read.error().reason;
  };
  const std::string call = shown(some_call()), event = shown(some_event(1));
  CHECK(refused(call, "123456789012,", "4611686018427387905,") == "time_ns: '4611686018427387905'");
  CHECK(refused(call, ",17,", ",16,") == "qp: '16'");
  CHECK(refused(call, ",17,", ",16401,") == "qp: '16401'");
  CHECK(refused(call, ",17,", ",+17,") == "qp: '+17'");
  CHECK(refused(call, ",17,", ",017,") == "qp: '017'");
  CHECK(refused(call, ",call,", ",fall,") == "event: 'fall'");
  CHECK(refused(call, ",aimd,", ",A\x1b,") == "algo: 'A?'");
  CHECK(refused(call, ",42,", ",0,") == "call: '0'");
  CHECK(refused(call, ",42,", ",4294967296,") == "call: '4294967296'");
  CHECK(refused(call, ",42,1,", ",42,2,") == "due: '2'");
  CHECK(refused(call, ",4096,", ",,") == "old_window: ''");
  CHECK(refused(call, ",4294967294,", ",-1,") == "new_window: '-1'");
  CHECK(refused(call, ",,,,,", ",1,,,,") == "bytes: '1'");
  CHECK(refused(call, ",,,,,", ",,,,") == "not 22 fields");
  CHECK(refused(call, ",,,,,", ",,,,,,") == "not 22 fields");
  CHECK(refused(event, ",255,", ",256,") == "marked: '256'");
  CHECK(refused(event, "0:1:", "0:1:1:") == "hops: '0:1:1:16777215:100000'");
  CHECK(refused(event, "0:1:", "") == "hops: '16777215:100000'");
  CHECK(refused(event, "100000", "100000 ") == "hops: '0:1:16777215:100000 '");
  CHECK(refused(event, "100000", "100000 1:1:1:1 1:1:1:1 1:1:1:1 1:1:1:1 1:1:1:1")
            .starts_with("hops: "));
  CHECK(refused(event, "100000", "100000 +1").starts_with("hops: "));
  const std::string full = shown(some_event(7));
  for (const char* wrong : {"+0", "+251", "+", "+2 +2", "+2 "}) {
    CHECK(refused(full, "+2", wrong).starts_with("hops: "));
  }
  CHECK(refused(event, ",nack,", ",nack,aimd") == "algo: 'aimd'");
}

TEST_CASE("calls text: pieces of any size give the same lines") {
  std::string text = std::string(kCallsHeader) + "\n";
  for (int n = 0; n < 20; ++n) text += shown(some_call()) + shown(some_event(5));
  for (size_t piece : {1, 7, 100, 65536}) {
    Result<size_t> lines = count(text, piece);
    REQUIRE(lines);
    CHECK(*lines == 40);
  }
}

TEST_CASE("calls text: errors name the line") {
  const std::string header = std::string(kCallsHeader) + "\n", call = shown(some_call());
  auto why = [](const std::string& text) {
    Result<size_t> lines = count(text, 100);
    REQUIRE(!lines);
    return lines.error().reason;
  };
  CHECK(why("") == "it is empty");
  CHECK(why("\n") == "line 1 is not the header of recorded calls");
  CHECK(why(call) == "line 1 is not the header of recorded calls");
  CHECK(why(header.substr(0, 20)) == "line 1 is cut off");
  CHECK(why(header + call + call.substr(0, 20)) == "line 3 is cut off");
  CHECK(why(header + call + "\n") == "line 3: not 22 fields");
  CHECK(why(header + call + header) == "line 3: event: 'event'");
  CHECK(why(header + std::string(CallsReader::kMaxLine + 1, 'x')) ==
        "line 2 is longer than 1024 octets");
  CHECK(
      why(header + call + lost_lines(7) + call).starts_with("line 3: lines of the recording are"));
  CHECK(why(header + std::string(3, '\0') + "\n") == "line 2: not 22 fields");
}
