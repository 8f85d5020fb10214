#include "tools/rocefs/sim/flows_csv.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "core/base/clock.h"
#include "tools/rocefs/sim/flow_statistics.h"

namespace rocefs {
namespace {

// Marks of the same length, because one replaces the other.
constexpr std::string_view kPartialMark = "partial ", kCompleteMark = "complete";
static_assert(kPartialMark.size() == kCompleteMark.size());

// State between quotes, with the reason of a failure or a loss; quotes are doubled (RFC 4180).
std::string state_cell(const FlowRecord& flow) {
  std::string text(flow_state_word(flow.state));
  if (!flow.reason.empty()) text.append(": ").append(flow.reason);
  std::string cell = "\"";
  for (char c : text) cell += c == '"' ? std::string("\"\"") : std::string(1, c);
  return cell + '"';
}

}  // namespace

FlowsCsv::FlowsCsv(std::string path, const std::string& origin)
    : path_(std::move(path)),
      mark_(static_cast<long>(fmt::formatted_size("# {}, ", origin))),
      file_(std::fopen(path_.c_str(), "we")) {
  if (!file_) note_failure();
  write(fmt::format(
      "# {}, {}\nvariant,flow,from,to,start_ns,bytes,fct_ns,ideal_ns,slowdown,goodput_bps,"
      "retransmitted,cnps,state,received\n",
      origin, kPartialMark));
}

void FlowsCsv::note_failure() {
  if (error_ == 0) error_ = errno ? errno : EIO;
}

void FlowsCsv::write(const std::string& text) {
  if (error_ != 0) return;
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size()) note_failure();
}

void FlowsCsv::flow_ended(const FlowRecord& flow) {
  if (error_ != 0) return;
  bool done = flow.state == FlowRecord::State::kDone;
  double seconds = static_cast<double>(flow.elapsed) * 1e-9;
  std::string moved, received, goodput, fct, slowdown;
  if (flow.state != FlowRecord::State::kNotStarted) {
    moved = fmt::format("{}", flow.moved);
    received = fmt::format("{}", flow.received);
    goodput =
        fmt::format("{:.0f}", seconds > 0 ? static_cast<double>(flow.moved) * 8 / seconds : 0);
  }
  if (done) {
    fct = fmt::format("{}", flow.elapsed);
    slowdown = fmt::format("{:.4f}", flow.slowdown());
  }
  write(fmt::format("{},{},{},{},{},{},{},{:.0f},{},{},{},{},{},{}\n", variant_, flow.name,
                    flow.from, flow.to, flow.start, moved, fct, flow.ideal_ns, slowdown, goodput,
                    flow.retransmitted, flow.cnps, state_cell(flow), received));
  flush_seldom();
}

// Lets readers of the file follow the run, once a second.
void FlowsCsv::flush_seldom() {
  TimeNs now = monotonic_ns();
  if (error_ != 0 || (flushed_ > 0 && now - flushed_ < kSecond)) return;
  flushed_ = now;
  if (std::fflush(file_.get()) != 0) note_failure();
}

Result<void> FlowsCsv::finish(bool complete) {
  errno = 0;
  if (error_ == 0 && std::fflush(file_.get()) != 0) note_failure();
  if (error_ == 0 && complete) {
    if (std::fseek(file_.get(), mark_, SEEK_SET) != 0) note_failure();
    write(std::string(kCompleteMark));
  }
  if (std::FILE* file = file_.release(); file && std::fclose(file) != 0) note_failure();
  if (error_ == 0) return {};
  return errorf(error_, "{}: {}", path_, std::strerror(error_));
}

}  // namespace rocefs
