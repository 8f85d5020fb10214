// A recording of calls: read alike in pieces of any size, and each line is one that is written.
#include <cerrno>
#include <cstring>

#include "pcc/card/calls_text.h"
#include "test/fuzz/fuzz.h"

using namespace rocefs;

namespace {

std::string text_of(const CallsLine& line) {
  std::string text;
  if (const auto* call = std::get_if<rocefs_qp_call>(&line)) {
    add_line(text, *call, "");
  } else {
    add_line(text, std::get<rocefs_qp_event>(line));
  }
  return text;
}

void check(const CallsLine& line) {
  const std::string text = text_of(line);
  Result<CallsLine> again = parse_calls_line(std::string_view(text).substr(0, text.size() - 1));
  fuzz::require(again && text_of(*again) == text);
}

// All lines as text, and the error behind them.
std::string read(std::string_view text, size_t piece) {
  std::string all;
  CallsReader reader;
  while (!text.empty()) {
    reader.add(text.substr(0, piece));
    text.remove_prefix(std::min(piece, text.size()));
    for (;;) {
      Result<std::optional<CallsLine>> line = reader.next();
      if (!line) {
        fuzz::require(line.error().code == EINVAL || line.error().code == ENODATA);
        for (char c : line.error().reason) fuzz::require(static_cast<unsigned char>(c) >= ' ');
        return all + line.error().reason;
      }
      if (!*line) break;
      check(**line);
      all += text_of(**line);
    }
  }
  Result<void> end = reader.end();
  return end ? all : all + end.error().reason;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  fuzz::require(read(text, 1 + data[0]) == read(text, size));
  text.insert(0, std::string(kCallsHeader) + "\n");
  fuzz::require(read(text, 1 + data[0]) == read(text, text.size()));
  return 0;
}
