// rdma pcc status: runs of PCC, their queue pairs and parameters.
#include <cerrno>

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

Result<void> add_status(Session& session, const std::string& name) {
  const NicTree& tree = session.tree();
  DeviceReader files(tree, name);
  Json row = {{"device", name},
              {"active", files.text("pcc/state") == "active"},
              {"algorithm", name_or_null(files.text("pcc/algo"))},
              {"num_threads", files.number("pcc/num_threads")},
              {"interval_us", files.number("pcc/interval_us")}};
  Json parameters = Json::object(), qps = Json::array();
  for (const std::string& parameter : tree.counted(device_file(name, "pcc/params"))) {
    Result<std::string> value = tree.value(device_file(name, "pcc/params/" + parameter));
    if (value) parameters[parameter] = number_or_text(*value);
  }
  Result<std::vector<QpFiles>> active = read_qps(tree, name);
  if (!active) return active.error();
  for (const QpFiles& qp : *active) qps.push_back(qp_json(qp));
  row["parameters"] = parameters;
  row["qps"] = qps;
  row["last_error"] = last_error(files.text("pcc/status"));
  session.add(std::move(row));
  return files.outcome();
}

Result<void> print_block(Session& session, const std::string& name) {
  Result<std::string> block = session.tree().read(device_file(name, "pcc/status"));
  if (!block) return block.error();
  session.print(*block);
  return {};
}

// Blocks of the active devices, then a table of all devices.
void print_overview(Session& session) {
  std::string table =
      fmt::format("{:<12}{:<10}{:<12}{}\n{:->38}\n", "NAME", "STATUS", "ALGO", "NUM_THREADS", "");
  for (const std::string& name : session.tree().devices()) {
    DeviceReader files(session.tree(), name);
    bool active = files.text("pcc/state") == "active";
    std::string algorithm = files.text("pcc/algo");
    table += fmt::format("{:<12}{:<10}{:<12}{}\n", name, active ? "Active" : "Inactive",
                         active ? algorithm : "-", files.number("pcc/num_threads"));
    Result<void> done = files.outcome();
    if (done && active) {
      done = print_block(session, name);
      session.print("\n");
    }
    if (!done) session.fail(errorf(done.error().code, "{}: {}", name, done.error().reason));
  }
  session.print(table);
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
          .manual = "Without a device: all that are active, then a table of all devices.",
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
