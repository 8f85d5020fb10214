#include "rdma/workload/goal_pattern.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "rdma/workload/size_distribution.h"

namespace rocefs {
namespace {

// Runs the schedule with messages that arrive at once. Returns what is left then.
GoalRun dry_run(const std::shared_ptr<const GoalSchedule>& schedule) {
  GoalRun run(schedule);
  TimeNs now = 0;
  run.begin(now);
  for (;;) {
    std::vector<uint32_t> sends = run.take_sends();
    for (uint32_t send : sends) run.arrived(send, now);
    if (!sends.empty()) continue;
    if (run.next() == kNever) return run;
    now = run.next();
    run.end_calc();
  }
}

std::string why_stuck(const std::string& path, const GoalRun& run) {
  const GoalOperation& one = run.first_left();
  bool receives = one.kind == GoalOperation::Kind::kRecv;
  return fmt::format("{}:{}: {} of rank {} waits for ever{}", path, one.line,
                     receives ? "this recv" : "this operation", one.rank,
                     receives ? ": no message is left for it, or it waits in a circle"
                              : ": what it requires never ends");
}

}  // namespace

Result<std::unique_ptr<GoalPattern>> GoalPattern::open(const std::string& path, size_t hosts,
                                                       TimeNs start) {
  std::ifstream file(path);
  if (!file) return errorf(errno, "{}: {}", path, std::strerror(errno));
  std::string text;
  std::vector<char> part(64 * 1024);
  while (file.read(part.data(), static_cast<std::streamsize>(part.size())), file.gcount() > 0) {
    text.append(part.data(), static_cast<size_t>(file.gcount()));
  }
  if (file.bad()) return errorf(EINVAL, "{}: it cannot be read, or is a directory", path);
  Result<GoalSchedule> read = GoalSchedule::parse(text, path);
  if (!read) return read.error();
  auto schedule = std::make_shared<const GoalSchedule>(std::move(*read));
  if (schedule->ranks > hosts) {
    return errorf(EINVAL, "{}: {} ranks, but hosts= has {}", path, schedule->ranks, hosts);
  }
  uint64_t sends = 0;
  for (const GoalOperation& one : schedule->operations) {
    if (one.kind != GoalOperation::Kind::kSend) continue;
    ++sends;
    if (one.amount <= kMaxLoadFlow) continue;
    return errorf(EINVAL, "{}:{}: a flow has at most {} octets", path, one.line, kMaxLoadFlow);
  }
  if (sends == 0) return errorf(EINVAL, "{}: no rank sends", path);
  if (GoalRun run = dry_run(schedule); run.left() > 0) {
    return Error{EINVAL, why_stuck(path, run)};
  }
  return std::unique_ptr<GoalPattern>(new GoalPattern(path, std::move(schedule), sends, start));
}

std::string GoalPattern::stuck() const {
  return run_.left() > 0 ? why_stuck(path_, run_) : std::string();
}

GoalPattern::GoalPattern(std::string path, std::shared_ptr<const GoalSchedule> schedule,
                         uint64_t sends, TimeNs start)
    : path_(std::move(path)),
      schedule_(std::move(schedule)),
      sends_(sends),
      start_(start),
      run_(schedule_) {
  run_.begin(start);
  plan_sends(start);
}

void GoalPattern::flow_arrived(const FlowStart& flow, TimeNs now) {
  run_.arrived(flow.operation, now);
  plan_sends(now);
}

void GoalPattern::woken(TimeNs now) {
  run_.end_calc();
  plan_sends(now);
}

// The whole schedule is one round. A flow has an octet at least.
void GoalPattern::plan_sends(TimeNs now) {
  for (uint32_t send : run_.take_sends()) {
    const GoalOperation& one = schedule_->operations[send];
    plan(now, {one.rank, one.peer, std::max<uint64_t>(one.amount, 1), send});
  }
  if (run_.left() == 0) round_over({0, start_, now});
}

}  // namespace rocefs
