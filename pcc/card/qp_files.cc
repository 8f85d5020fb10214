#include "pcc/card/qp_files.h"

#include <cerrno>
#include <iterator>

#include "core/tree/function_file.h"
#include "core/tree/trigger.h"

namespace rocefs {
namespace {

struct QpRow {
  std::string_view path;
  std::string_view doc;
  std::string (*show)(const QpReading& qp);
};

constexpr QpRow kRows[] = {
    {"window",
     "octets of requests that may be in flight, by PCC or else by CFR; 4294967295: no limit",
     [](const QpReading& qp) { return std::to_string(qp.window); }},
    {"cnp", "CNPs since PCC counts them for this queue pair; all while it is not active",
     [](const QpReading& qp) { return std::to_string(qp.cnps); }},
    {"ctrl_count", "how often its algorithm has set the window since it was applied",
     [](const QpReading& qp) { return std::to_string(qp.calls); }},
    {"rtt_ns", "the round trip that was measured last; 0 before the first",
     [](const QpReading& qp) { return std::to_string(qp.rtt_ns); }},
    {"rtt_timeouts", "round trips that its algorithm asked for and gave up",
     [](const QpReading& qp) { return std::to_string(qp.rtt_timeouts); }},
    {"late_calls", "calls of its algorithm that came an interval or more after their time",
     [](const QpReading& qp) { return std::to_string(qp.late_calls); }},
    {"rate", "bits per second at which its data is paced; the link's where nothing paces it",
     [](const QpReading& qp) { return std::to_string(qp.rate_bps); }},
    {"pid", "of the program that made it; 0 where that is not known",
     [](const QpReading& qp) { return std::to_string(qp.pid); }},
    {"comm", "that program's name", [](const QpReading& qp) { return qp.comm; }},
};

constexpr TriggerRow kAlgo{
    "algo", "ALGORITHM",
    "its algorithm, - while PCC is not active; a store applies one to this queue pair alone"};

// Reads the queue pair of this generation; an error after it has gone.
Result<QpReading> read(const PccDevice& device, ActiveQp which) {
  std::optional<QpReading> qp;
  if (device.signals()) qp = read_qp(*device.signals(), device.control(), which.qpn);
  if (!qp || qp->generation != which.generation) {
    return errorf(ENODEV, "queue pair {} has gone", which.qpn);
  }
  return *qp;
}

// A queue pair without a call yet runs the device's algorithm.
std::string algorithm_of(const PccDevice& device, const QpReading& qp) {
  if (qp.owned) return std::string(device.name_of(qp.slot));
  return device.active() && device.applied() ? device.applied()->name : "-";
}

// Field of a CSV line, quoted where RFC 4180 wants quotes.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"") == text.npos) return text;
  std::string quoted = "\"";
  for (char letter : text) {
    if (letter == '"') quoted += '"';
    quoted += letter;
  }
  return quoted + '"';
}

}  // namespace

std::string qp_table(const PccDevice& device) {
  std::string text = "qp";
  for (const QpRow& row : kRows) fmt::format_to(std::back_inserter(text), ",{}", row.path);
  fmt::format_to(std::back_inserter(text), ",{}\n", kAlgo.path);
  if (!device.signals()) return text;
  for (const QpReading& qp : read_active_qps(*device.signals(), device.control())) {
    text += std::to_string(qp.qpn);
    for (const QpRow& row : kRows) text += "," + csv_field(row.show(qp));
    text += "," + csv_field(algorithm_of(device, qp)) + "\n";
  }
  return text;
}

QpFiles::QpFiles(Tree& tree, const std::string& directory, PccDevice& device, Engine& engine,
                 std::function<bool()> changed)
    : tree_(tree), directory_(directory), device_(device), engine_(engine) {
  Ino ino = tree_.add_directory(directory_, true);
  update();
  tree_.set_refresh(ino, [this, changed = std::move(changed)] {
    if (changed()) update();
  });
}

std::string QpFiles::path_of(uint32_t qpn) const {
  return fmt::format("{}/{}", directory_, qpn);
}

// Adds and removes directories after a change of the active queue pairs.
void QpFiles::update() {
  if (!device_.signals()) return;
  std::map<uint32_t, uint32_t> now;
  for (ActiveQp qp : active_qps(*device_.signals())) now[qp.qpn] = qp.generation;
  for (auto [qpn, generation] : generations_) {
    auto it = now.find(qpn);
    if (it == now.end() || it->second != generation) tree_.remove(path_of(qpn));
  }
  generations_.swap(now);  // `now` holds the earlier ones
  for (auto [qpn, generation] : generations_) {
    auto it = now.find(qpn);
    if (it == now.end() || it->second != generation) add(qpn);
  }
}

void QpFiles::add(uint32_t qpn) {
  std::string directory = path_of(qpn);
  ActiveQp which{qpn, generations_.at(qpn)};
  tree_.add_directory(directory, true);
  for (const QpRow& row : kRows) {
    auto show = [&device = device_, which, show = row.show]() -> Result<std::string> {
      Result<QpReading> qp = read(device, which);
      if (!qp) return qp.error();
      return show(*qp);
    };
    tree_.add_file(fmt::format("{}/{}", directory, row.path), read_only(std::move(show), row.doc));
  }
  auto apply = [&device = device_, which, qpn](std::string_view text, const OperationPtr&,
                                               Answer<void> answer) {
    if (Result<QpReading> qp = read(device, which); !qp) return answer(qp.error());
    device.apply(std::string(without_newline(text)), qpn, std::move(answer));
  };
  auto applied = [&device = device_, which]() -> Result<std::string> {
    Result<QpReading> qp = read(device, which);
    if (!qp) return qp.error();
    return algorithm_of(device, *qp);
  };
  add_trigger(tree_, directory, kAlgo, engine_, std::move(apply), std::move(applied));
}

}  // namespace rocefs
