// rdma pcc status: runs of PCC, their queue pairs and parameters.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <map>
#include <thread>

#include "tools/mango-ctl/commands.h"
#include "tools/mango-ctl/pcc.h"

namespace rocefs {
namespace {

// Text of the block's line `Last error: …`; null without one.
Json last_error(const std::string& block) {
  constexpr std::string_view kLine = "\nLast error: ";
  size_t at = block.rfind(kLine);
  if (at == block.npos) return nullptr;
  at += kLine.size();
  return block.substr(at, block.find('\n', at) - at);
}

// True if each probe for a round trip has timed out: an algorithm asks for one at each call, and a
// round trip that comes in time is a call more. `before`: of the same queue pair, or null.
bool is_blind(const QpFiles* before, const QpFiles& now) {
  auto count = [&](std::string QpFiles::*text) {
    auto number = [&](const QpFiles& qp) { return std::strtoull((qp.*text).c_str(), nullptr, 10); };
    return number(now) - (before ? std::min(number(*before), number(now)) : 0);
  };
  const uint64_t timeouts = count(&QpFiles::rtt_timeouts);
  return timeouts > 0 && timeouts + 2 >= count(&QpFiles::ctrl_count);
}

std::string in_words(const std::vector<std::string>& qps) {
  constexpr size_t kShown = 8;
  const size_t shown = std::min(qps.size(), kShown);
  std::string text = fmt::format("{}", fmt::join(qps.begin(), qps.begin() + shown, ", "));
  return qps.size() > shown ? text + fmt::format(" and {} more", qps.size() - shown) : text;
}

// Queue pairs that have lost sight of their round trips, by the probes of a moment. While time
// stands, by all of theirs.
Json hints(const NicTree& tree, const std::string& device, const std::vector<QpFiles>& first) {
  constexpr std::chrono::milliseconds kMoment(20);
  auto has_timeouts = [](const QpFiles& qp) { return qp.rtt_timeouts != "0"; };
  if (std::none_of(first.begin(), first.end(), has_timeouts)) return Json::array();
  std::this_thread::sleep_for(kMoment);
  Result<std::vector<QpFiles>> second = read_qps(tree, device);
  if (!second) return Json::array();
  std::map<std::string, const QpFiles*> before;
  for (const QpFiles& qp : first) before[qp.qp] = &qp;
  std::vector<std::string> blind;
  for (const QpFiles& qp : *second) {
    auto found = before.find(qp.qp);
    const QpFiles* earlier = found == before.end() ? nullptr : found->second;
    if (earlier && earlier->ctrl_count == qp.ctrl_count) earlier = nullptr;
    if (is_blind(earlier, qp)) blind.push_back(qp.qp);
  }
  if (blind.empty()) return Json::array();
  return {
      fmt::format("every recent RTT probe of QP {} timed out: the algorithm does not see the round "
                  "trip, let it wait longer (rttvegas: timeout_us)",
                  in_words(blind))};
}

// Lines below a device's block: probes that timed out, and what to do about them.
Result<void> print_timeouts(Session& session, const std::string& name) {
  Result<std::vector<QpFiles>> qps = read_qps(session.tree(), name);
  if (!qps) return qps.error();
  std::vector<std::string> counts;
  for (const QpFiles& qp : *qps) {
    if (qp.rtt_timeouts != "0") counts.push_back(fmt::format("{}: {}", qp.qp, qp.rtt_timeouts));
  }
  if (!counts.empty())
    session.print(fmt::format("RTT timeouts by QP: {}\n", fmt::join(counts, ", ")));
  for (const Json& hint : hints(session.tree(), name, *qps)) {
    session.print(fmt::format("Hint: {}\n", hint.get<std::string>()));
  }
  return {};
}

Result<void> add_status(Session& session, const std::string& name) {
  const NicTree& tree = session.tree();
  DeviceReader files(tree, name);
  Json row = {{"device", name},
              {"active", files.text("pcc/state") == "active"},
              {"algorithm", name_or_null(files.text("pcc/algo"))},
              {"num_threads", files.number("pcc/num_threads_active")},
              {"interval_us", files.number("pcc/interval_us")}};
  Json parameters = Json::object(), qps = Json::array();
  for (const std::string& parameter : tree.counted(device_file(name, "pcc/params"))) {
    Result<std::string> value = tree.value(device_file(name, "pcc/params/" + parameter));
    if (value) parameters[parameter] = number_or_text(*value);
  }
  Result<std::vector<QpFiles>> active = read_qps(tree, name);
  if (!active) return active.error();
  for (const QpFiles& qp : *active) qps.push_back(qp_json(qp));
  row["parameters"] = std::move(parameters);
  row["qps"] = std::move(qps);
  row["owner"] = owner_of(files).json();
  row["slow_calls"] = files.number("pcc/slow_calls");
  row["last_error"] = last_error(files.text("pcc/status"));
  row["hints"] = hints(tree, name, *active);
  session.add(std::move(row));
  return files.outcome();
}

Result<void> print_block(Session& session, const std::string& name) {
  Result<std::string> block = session.tree().read(device_file(name, "pcc/status"));
  if (!block) return block.error();
  session.print(*block);
  return print_timeouts(session, name);
}

// A line of the table of devices.
struct Row {
  std::string name, status, algorithm;
  uint64_t threads;
};

// Columns as wide as the longest name wants, so that a blank stays behind it.
std::string table_of(const std::vector<Row>& rows) {
  constexpr size_t kName = 12, kStatus = 10, kAlgorithm = 12, kRule = 38;
  size_t name = kName, algorithm = kAlgorithm;
  for (const Row& row : rows) {
    name = std::max(name, row.name.size() + 1);
    algorithm = std::max(algorithm, row.algorithm.size() + 1);
  }
  auto line = [&](std::string_view first, std::string_view second, std::string_view third,
                  auto fourth) {
    return fmt::format("{:<{}}{:<{}}{:<{}}{}\n", first, name, second, kStatus, third, algorithm,
                       fourth);
  };
  std::string table = line("NAME", "STATUS", "ALGO", "NUM_THREADS");
  table += std::string(kRule + name - kName + algorithm - kAlgorithm, '-') + "\n";
  for (const Row& row : rows) table += line(row.name, row.status, row.algorithm, row.threads);
  return table;
}

// Blocks of the active devices, then a table of all devices.
void print_overview(Session& session) {
  std::vector<Row> rows;
  for (const std::string& name : session.tree().devices()) {
    DeviceReader files(session.tree(), name);
    bool active = files.text("pcc/state") == "active";
    bool owned = !owner_of(files).text.empty();
    std::string algorithm = files.text("pcc/algo");
    rows.push_back({name,
                    active  ? "Active"
                    : owned ? "Program"
                            : "Inactive",
                    active ? algorithm : "-", files.number("pcc/num_threads_active")});
    Result<void> done = files.outcome();
    if (done && (active || owned)) {
      done = print_block(session, name);
      session.print("\n");
    }
    if (!done) session.fail(errorf(done.error().code, "{}: {}", name, done.error().reason));
  }
  session.print(table_of(rows));
}

void pcc_status(Session& session, const DeviceOptions& options) {
  const std::string& device = options.device;
  bool overview = device.empty();
  if (session.json()) {
    if (overview && session.tree().devices().empty()) return;
    session.each_device(overview ? "all" : device,
                        [&](const std::string& name) { return add_status(session, name); });
  } else if (overview) {
    print_overview(session);
  } else {
    session.each_device(device,
                        [&](const std::string& name) { return print_block(session, name); });
  }
}

}  // namespace

std::vector<Command> status_commands() {
  return {
      CommandOf<DeviceOptions>{
          .path = "rdma pcc status",
          .summary = "Show algorithm, parameters and queue pairs",
          .manual =
              "Without a device: all that are active or that a program has claimed, then a "
              "table of all devices. Where probes for round trips timed out they are counted "
              "by queue pair. Calls of the algorithm that took longer than 100 ms are counted "
              "together.",
          .examples = {"rdma pcc status", "rdma pcc status mb_0", "--json rdma pcc status"},
          .arguments = {{&DeviceOptions::device,
                         {.name = "device",
                          .help = "its name, mb_0, or all",
                          .offer = Offer::kDevicesOrAll,
                          .optional = true}}},
          .run = pcc_status},
  };
}

}  // namespace rocefs
