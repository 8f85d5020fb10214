// rdma pcc: modes and devices.
#include "tools/mango-ctl/pcc.h"

#include <cerrno>
#include <utility>

#include "core/base/text.h"
#include "tools/mango-ctl/commands.h"
#include "tools/mango-ctl/csv.h"

namespace rocefs {

Result<bool> pcc_is_active(const NicTree& tree, const std::string& device) {
  Result<std::string> state = tree.value(device_file(device, "pcc/state"));
  if (!state) return state.error();
  return *state == "active";
}

Result<void> must_be_loaded(const NicTree& tree, const std::string& device,
                            const std::string& algorithm) {
  Result<std::string> names = tree.value(device_file(device, "pcc/algos"));
  if (!names) return names.error();
  for (std::string_view name : split(*names, " \t\n")) {
    if (name == algorithm) return {};
  }
  return errorf(ENOENT, "no algorithm '{}' is loaded: {}", algorithm, *names);
}

std::string applied_to(const NicTree& tree, const std::string& device) {
  Result<std::string> name = tree.value(device_file(device, "pcc/algo"));
  return name ? *name : "";
}

namespace {

constexpr std::pair<std::string_view, std::string QpFiles::*> kSnapshotColumns[] = {
    {"qp", &QpFiles::qp},         {"window", &QpFiles::window},
    {"cnp", &QpFiles::cnp},       {"ctrl_count", &QpFiles::ctrl_count},
    {"rtt_ns", &QpFiles::rtt_ns}, {"rtt_timeouts", &QpFiles::rtt_timeouts},
    {"rate", &QpFiles::rate},     {"pid", &QpFiles::pid},
    {"comm", &QpFiles::comm},     {"algo", &QpFiles::algo}};

}  // namespace

Result<std::vector<QpFiles>> read_qps(const NicTree& tree, const std::string& device) {
  Result<std::string> text = tree.read(device_file(device, "pcc/snapshot"));
  if (!text) return text.error();
  std::vector<CsvRow> rows = csv_rows(*text);
  if (rows.empty()) return errorf(EPROTO, "{}: pcc/snapshot is empty", device);
  std::vector<QpFiles> qps(rows.size() - 1);
  for (auto [name, member] : kSnapshotColumns) {
    size_t column = csv_column(rows[0], name);
    if (column == rows[0].size()) {
      return errorf(EPROTO, "{}: pcc/snapshot has no column {}", device, name);
    }
    for (size_t i = 0; i < qps.size(); ++i) qps[i].*member = std::move(rows[i + 1][column]);
  }
  return qps;
}

PccOwner owner_of(DeviceReader& files) {
  const std::string text = files.text("pcc/owner");
  return {text == "none" ? "" : text};
}

// The name may have blanks and brackets.
Json PccOwner::json() const {
  constexpr std::string_view kPid = " (pid ";
  const size_t at = text.rfind(kPid);
  if (at == text.npos) return nullptr;
  const std::string pid = text.substr(at + kPid.size(), text.size() - at - kPid.size() - 1);
  return {{"process", text.substr(0, at)}, {"pid", number_or_text(pid)}};
}

Json qp_json(const QpFiles& files) {
  Json json = Json::object();  // an initializer list would copy each pair
  json["qp"] = number_or_text(files.qp);
  json["pid"] = number_or_text(files.pid);
  json["process"] = files.comm;
  json["algorithm"] = name_or_null(files.algo);
  json["ctrl_count"] = number_or_text(files.ctrl_count);
  json["cnp"] = number_or_text(files.cnp);
  json["window"] = files.window == kNoWindow ? Json(nullptr) : number_or_text(files.window);
  json["rtt_ns"] = number_or_text(files.rtt_ns);
  json["rtt_timeouts"] = number_or_text(files.rtt_timeouts);
  json["rate_bps"] = number_or_text(files.rate);
  return json;
}

namespace {

struct ModeOptions {
  std::string device, mode;
};

std::string mode_name(const std::string& mode) {
  if (mode == "soc") return "SoC";
  return mode == "host" ? "Host" : mode;
}

void set_mode(Session& session, const ModeOptions& options) {
  session.each_device(options.device, [&](const std::string& name) -> Result<void> {
    Result<void> stored = session.tree().store(device_file(name, "pcc/mode"), options.mode);
    if (!stored) return stored;
    session.print(fmt::format(
        "Set PCC mode to {} mode for device {}\nPlease reload mango-drivers to apply PCC mode\n",
        mode_name(options.mode), name));
    session.add({{"device", name}, {"mode_set", options.mode}});
    return {};
  });
}

void get_mode(Session& session, const DeviceOptions& options) {
  session.each_device(options.device, [&](const std::string& name) {
    DeviceReader files(session.tree(), name);
    std::string mode = files.text("pcc/mode_active");
    session.print(fmt::format("{}: {} mode\n", name, mode_name(mode)));
    if (session.json()) {
      session.add({{"device", name}, {"mode", mode}, {"mode_set", files.text("pcc/mode")}});
    }
    return files.outcome();
  });
}

void list_devices(Session& session, const NoOptions&) {
  for (const std::string& name : session.tree().devices()) {
    if (!session.tree().has(device_file(name, "pcc"))) continue;
    session.print(name + "\n");
    session.add({{"device", name}});
  }
}

}  // namespace

std::vector<Command> pcc_commands() {
  return {
      Command{
          .path = "rdma pcc",
          .summary = "Programmable congestion control",
          .manual = "An algorithm sets the windows of the active queue pairs.",
          .examples = {"rdma pcc apply mb_0 aimd", "rdma pcc start mb_0", "rdma pcc status mb_0"}},
      Command{.path = "rdma pcc mode",
              .summary = "Where algorithms run: on the card or on the host",
              .examples = {"rdma pcc mode set all soc", "rdma pcc mode get all"}},
      CommandOf<ModeOptions>{
          .path = "rdma pcc mode set",
          .summary = "Choose the mode for the next load of the driver",
          .manual = "`proj disable rdma` and `proj enable rdma` reload the driver.",
          .examples = {"rdma pcc mode set all soc", "rdma pcc mode set mb_0 host"},
          .arguments = {device_or_all<ModeOptions>(),
                        {&ModeOptions::mode,
                         {.name = "mode",
                          .help = "soc: on the card; host: in programs with libmango",
                          .choices = {"soc", "host"}}}},
          .run = set_mode},
      CommandOf<DeviceOptions>{.path = "rdma pcc mode get",
                               .summary = "Show the mode since the last load of the driver",
                               .examples = {"rdma pcc mode get all"},
                               .arguments = {device_or_all<DeviceOptions>()},
                               .run = get_mode},
      CommandOf<NoOptions>{.path = "rdma pcc dev",
                           .summary = "List the devices, one per line",
                           .examples = {"rdma pcc dev"},
                           .run = list_devices},
  };
}

}  // namespace rocefs
