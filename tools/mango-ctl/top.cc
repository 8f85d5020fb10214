// rdma pcc top: the queue pairs of a device, refreshed.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <optional>

#include "core/base/kstrto.h"
#include "tools/mango-ctl/commands.h"
#include "tools/mango-ctl/pcc.h"
#include "tools/mango-ctl/table.h"
#include "tools/mango-ctl/terminal.h"

namespace rocefs {
namespace {

struct TopOptions {
  std::string device;
  double interval_s = 1;
  uint64_t count = 0;  // refreshes; 0: no end
};

uint64_t number(const std::string& text) {
  return std::strtoull(text.c_str(), nullptr, 10);
}

// One refresh: values of the files, and the device's time at which they were read.
struct Look {
  std::string state, algorithm, num_threads, interval_us;
  PccOwner owner;
  uint64_t now_ns = 0;
  size_t active = 0;
  std::vector<QpFiles> qps;  // those that are shown, in the order of their numbers
};

Result<Look> look_at(const NicTree& tree, const std::string& device, size_t max_qps) {
  DeviceReader files(tree, device);
  Look look;
  look.state = files.text("pcc/state");
  look.algorithm = files.text("pcc/algo");
  look.num_threads = files.text("pcc/num_threads_active");
  look.interval_us = files.text("pcc/interval_us");
  look.owner = owner_of(files);
  if (!tree.has("class/infiniband/" + device)) {
    return errorf(ENODEV, "{}: no such device", device);
  }
  if (!files.outcome()) return files.outcome().error();
  Result<std::string> now = tree.value("kernel/debug/rocefs/clock/now_ns");
  if (!now) return now.error();
  look.now_ns = number(*now);
  Result<std::vector<QpFiles>> qps = read_qps(tree, device);
  if (!qps) return qps.error();
  look.active = qps->size();
  if (qps->size() > max_qps) qps->resize(max_qps);
  look.qps = std::move(*qps);
  return look;
}

// Rate per second since the previous refresh; nothing if there is none, no time has passed, or the
// count began anew.
std::optional<double> per_second(const Look& before, const Look& now, const QpFiles& qp,
                                 std::string QpFiles::*count) {
  if (now.now_ns <= before.now_ns) return std::nullopt;
  auto same = std::lower_bound(
      before.qps.begin(), before.qps.end(), number(qp.qp),
      [](const QpFiles& other, uint64_t wanted) { return number(other.qp) < wanted; });
  if (same == before.qps.end() || same->qp != qp.qp) return std::nullopt;
  uint64_t old = number((*same).*count), fresh = number(qp.*count);
  if (fresh < old) return std::nullopt;
  return static_cast<double>(fresh - old) * 1e9 / static_cast<double>(now.now_ns - before.now_ns);
}

std::string rounded(std::optional<double> value) {
  return value ? fmt::format("{:.0f}", *value) : "-";
}

std::string rtt_text(const std::string& rtt_ns) {
  uint64_t ns = number(rtt_ns);
  if (ns == 0) return "-";
  double us = static_cast<double>(ns) / 1e3;
  return us < 1e5 ? fmt::format("{:.1f}us", us) : fmt::format("{:.1f}ms", us / 1e3);
}

std::string rate_text(const std::string& rate_bps) {
  double bps = static_cast<double>(number(rate_bps));
  return bps >= 1e9 ? fmt::format("{:.2f}Gb/s", bps / 1e9) : fmt::format("{:.1f}Mb/s", bps / 1e6);
}

constexpr TableColumn kTopColumns[] = {
    {"QP", 8, 7, false, false},   {"PID", 9, 8, false, false},     {"PROCESS", 17, 11, false, true},
    {"ALGO", 12, 9, false, true}, {"WINDOW", 11, 10, true, false}, {"CNP/s", 10, 7, true, false},
    {"RTT", 11, 9, true, false},  {"RATE", 12, 10, true, false},   {"CALLS/s", 10, 8, true, false},
};

// First line; a long name of the algorithm is cut.
std::string heading(const std::string& device, const Look& now, size_t width) {
  if (!now.owner.text.empty()) {
    return fmt::format("{}: PCC of program {}, threads {}, QPs {}\n", device, now.owner.text,
                       now.num_threads, now.active);
  }
  std::string start = fmt::format("{}: PCC {}, algorithm ", device, now.state);
  std::string end = fmt::format(", threads {}, interval {} us, QPs {}\n", now.num_threads,
                                now.interval_us, now.active);
  size_t others = start.size() + end.size() - 1;
  std::string algorithm = now.algorithm == "none" ? "-" : now.algorithm;
  return start + algorithm.substr(0, width > others ? width - others : 1) + end;
}

std::string text_of(const std::string& device, const Look& before, const Look& now, size_t width) {
  std::vector<std::vector<std::string>> rows;
  for (const QpFiles& qp : now.qps) {
    rows.push_back(
        {qp.qp, qp.pid, qp.comm, qp.algo, qp.window == kNoWindow ? "unlimited" : qp.window,
         rounded(per_second(before, now, qp, &QpFiles::cnp)), rtt_text(qp.rtt_ns),
         rate_text(qp.rate), rounded(per_second(before, now, qp, &QpFiles::ctrl_count))});
  }
  return heading(device, now, width) + table_text(kTopColumns, rows, width);
}

Json number_or_null(std::optional<double> value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string json_of(const std::string& device, const Look& before, const Look& now) {
  Json qps = Json::array();
  for (const QpFiles& qp : now.qps) {
    Json row = qp_json(qp);
    row["cnp_per_s"] = number_or_null(per_second(before, now, qp, &QpFiles::cnp));
    row["calls_per_s"] = number_or_null(per_second(before, now, qp, &QpFiles::ctrl_count));
    qps.push_back(std::move(row));
  }
  return one_line({{"device", device},
                   {"time_ns", now.now_ns},
                   {"active", now.state == "active"},
                   {"algorithm", name_or_null(now.algorithm)},
                   {"num_threads", number_or_text(now.num_threads)},
                   {"interval_us", number_or_text(now.interval_us)},
                   {"owner", now.owner.json()},
                   {"qps", qps}}) +
         "\n";
}

Result<void> watch(Session& session, const std::string& device, const TopOptions& options) {
  constexpr size_t kHeading = 2;  // lines
  Terminal terminal(!session.json());
  Look before;
  for (uint64_t i = 0;;) {
    size_t room = terminal.lines();
    Result<Look> now = look_at(session.tree(), device, room > kHeading ? room - kHeading : 0);
    if (!now) return now.error();
    std::string text = session.json() ? json_of(device, before, *now)
                                      : text_of(device, before, *now, terminal.columns());
    if (!session.json() && !::isatty(STDOUT_FILENO) && i > 0) text = "\n" + text;
    if (!terminal.draw(text)) return {};
    before = std::move(*now);
    if (++i == options.count || !terminal.pause(options.interval_s)) return {};
  }
}

std::string check_interval(const std::string& text) {
  char* end = nullptr;
  double seconds = std::strtod(text.c_str(), &end);
  bool good = !*end && seconds >= 0.01 && seconds <= 86400;
  return good ? "" : fmt::format("'{}': 0.01 to 86400 seconds are wanted", text);
}

std::string check_count(const std::string& text) {
  Result<uint64_t> count = kstrtou64(text, 10);
  return count && *count > 0 ? "" : fmt::format("'{}': a number of refreshes is wanted", text);
}

void run_top(Session& session, const TopOptions& options) {
  session.streams();
  session.each_device(options.device,
                      [&](const std::string& name) { return watch(session, name, options); });
}

}  // namespace

std::vector<Command> top_commands() {
  return {
      CommandOf<TopOptions>{
          .path = "rdma pcc top",
          .summary = "Watch the queue pairs until Ctrl-C",
          .manual =
              "Windows, CNPs, RTTs and rates of the active queue pairs are refreshed; a refresh is "
              "plain text where stdout is no terminal. Names are cut where the terminal is "
              "narrow. Rates are per second of the device's clock.",
          .examples = {"rdma pcc top mb_0", "rdma pcc top mb_0 --interval 0.2",
                       "rdma pcc top mb_0 -n 2 | tail -n 20"},
          .arguments = {one_device<TopOptions>(),
                        {&TopOptions::interval_s,
                         {.name = "--interval",
                          .value = "S",
                          .help = "seconds between two refreshes, 0.01 to 86400",
                          .check = check_interval}},
                        {&TopOptions::count,
                         {.name = "-n,--count",
                          .value = "N",
                          .help = "end after this many refreshes",
                          .check = check_count}}},
          .run = run_top},
  };
}

}  // namespace rocefs
