// The text of recorded calls: pcc/calls writes it, a replay reads it.
//
// CSV, a line for each call, with the events that it took before it. A hop of an event is
// QUEUE:SENT:TIME:RATE in the units of the register page; hops are separated by spaces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/base/result.h"
#include "rdma/uapi/registers.h"

namespace rocefs {

inline constexpr std::string_view kCallsHeader =
    "time_ns,qp,generation,event,algo,call,due,old_window,new_window,rate_bps,line_bps,cnp,rtt_ns,"
    "rtt_new,probe,active,bytes,acked,sent,marked,way,hops";

// Lines with their newline. `slot` of a call is its algorithm's name in the text.
void add_line(std::string& text, const rocefs_qp_call& call, std::string_view algorithm);
void add_line(std::string& text, const rocefs_qp_event& event);
std::string lost_lines(uint64_t count);

using CallsLine = std::variant<rocefs_qp_call, rocefs_qp_event>;
// A line behind the header, without its newline. EINVAL for anything else than add_line() writes;
// ENODATA for a line that says that lines are lost.
Result<CallsLine> parse_calls_line(std::string_view line);

// CallsReader: the lines of a text that comes in pieces. Keeps no more than a line and a piece.
class CallsReader {
 public:
  static constexpr size_t kMaxLine = 1024;

  // Precondition: next() has returned nothing since the last piece.
  void add(std::string_view piece);
  // The next line; nothing if another piece is needed. Errors name the line and are final: EINVAL,
  // ENODATA.
  Result<std::optional<CallsLine>> next();
  // At the end of the text. EINVAL: the last line is cut off, or there is no header.
  Result<void> end() const;
  uint64_t line() const { return line_; }  // number of the latest one, from 1

 private:
  std::string text_;
  size_t begin_ = 0;  // of the next line
  uint64_t line_ = 0;
};

}  // namespace rocefs
