// rdma cfr, ops and sr: reactions of a NIC itself to congestion and loss.
#include "tools/mango-ctl/commands.h"

namespace rocefs {
namespace {

const char* yes_or_no(bool enabled) {
  return enabled ? "Yes" : "No";
}

void store_enable(Session& session, const std::string& device, const std::string& file,
                  bool enabled) {
  session.each_device(device, [&](const std::string& name) {
    return session.tree().store(device_file(name, file), enabled ? "1" : "0");
  });
}

void cfr_enable(Session& session, const DeviceOptions& options) {
  store_enable(session, options.device, "cfr/enable", true);
}
void cfr_disable(Session& session, const DeviceOptions& options) {
  store_enable(session, options.device, "cfr/enable", false);
}
void ops_disable(Session& session, const DeviceOptions& options) {
  store_enable(session, options.device, "ops/enable", false);
}
void sr_enable(Session& session, const DeviceOptions& options) {
  store_enable(session, options.device, "sr/enable", true);
}
void sr_disable(Session& session, const DeviceOptions& options) {
  store_enable(session, options.device, "sr/enable", false);
}

struct OpsOptions {
  std::string device, udp_port_range, ops_timer;
};

// Stores all knobs or none; options that are not given keep their values.
void ops_enable(Session& session, const OpsOptions& options) {
  session.each_device(options.device, [&](const std::string& name) {
    std::vector<Assignment> knobs = {{device_file(name, "ops/enable"), "1"}};
    if (!options.udp_port_range.empty()) {
      knobs.push_back({device_file(name, "ops/udp_port_range"), options.udp_port_range});
    }
    if (!options.ops_timer.empty()) {
      knobs.push_back({device_file(name, "ops/ops_timer"), options.ops_timer});
    }
    return session.tree().store_together(knobs);
  });
}

// Device name before a line: the reference has it for CFR alone, `all` needs it everywhere.
std::string prefix(const std::string& asked, const std::string& name) {
  return asked == "all" ? name + ": " : "";
}

void cfr_status(Session& session, const DeviceOptions& options) {
  session.each_device(options.device, [&](const std::string& name) {
    DeviceReader files(session.tree(), name);
    bool enabled = files.flag("cfr/enable");
    session.print(fmt::format("{}: CFR Enabled: {}\n", name, yes_or_no(enabled)));
    if (session.json()) {
      session.add({{"device", name},
                   {"enabled", enabled},
                   {"saved", files.flag("cfr/saved")},
                   {"ooo_threshold", files.number("cfr/ooo_threshold")}});
    }
    return files.outcome();
  });
}

void ops_status(Session& session, const DeviceOptions& options) {
  session.each_device(options.device, [&](const std::string& name) {
    DeviceReader files(session.tree(), name);
    bool enabled = files.flag("ops/enable");
    uint64_t ports = files.number("ops/udp_port_range");
    std::string timer = files.text("ops/ops_timer"), before = prefix(options.device, name);
    session.print(fmt::format("{0}OPS Enabled: {1}\n{0}UDP Port Range: {2}\n{0}OPS Timer: {3}\n",
                              before, yes_or_no(enabled), ports, timer));
    session.add(
        {{"device", name}, {"enabled", enabled}, {"udp_port_range", ports}, {"ops_timer", timer}});
    return files.outcome();
  });
}

void sr_status(Session& session, const DeviceOptions& options) {
  session.each_device(options.device, [&](const std::string& name) {
    DeviceReader files(session.tree(), name);
    bool enabled = files.flag("sr/enable");
    session.print(fmt::format("{}Selective Repeat Enabled: {}\n", prefix(options.device, name),
                              yes_or_no(enabled)));
    if (session.json()) {
      session.add({{"device", name},
                   {"enabled", enabled},
                   {"reorder_window", number_or_text(files.text("sr/reorder_window"))}});
    }
    return files.outcome();
  });
}

std::vector<Command> cfr_rows() {
  return {
      Command{.path = "rdma cfr",
              .summary = "Configuration-free RoCEv2: CNPs without ECN",
              .manual = "A receiver sends CNPs when packets arrive out of order; a sender narrows "
                        "its window when CNPs arrive.",
              .examples = {"rdma cfr enable mb_0", "rdma cfr disable mb_0", "rdma cfr status mb_0",
                           "--json rdma cfr status all"}},
      CommandOf<DeviceOptions>{.path = "rdma cfr enable",
                               .summary = "Enable CFR",
                               .manual = "Fails while PCC is active, which replaces CFR.",
                               .examples = {"rdma cfr enable mb_0"},
                               .arguments = {device_or_all<DeviceOptions>()},
                               .run = cfr_enable},
      CommandOf<DeviceOptions>{.path = "rdma cfr disable",
                               .summary = "Disable CFR",
                               .examples = {"rdma cfr disable mb_0"},
                               .arguments = {device_or_all<DeviceOptions>()},
                               .run = cfr_disable},
      CommandOf<DeviceOptions>{.path = "rdma cfr status",
                               .summary = "Show whether CFR is enabled",
                               .examples = {"rdma cfr status mb_0", "--json rdma cfr status all"},
                               .arguments = {device_or_all<DeviceOptions>()},
                               .run = cfr_status},
  };
}

std::vector<Command> ops_rows() {
  return {
      Command{.path = "rdma ops",
              .summary = "Packet spraying: a flow takes several paths",
              .manual = "The UDP source port of a flow varies, so that switches hash its packets "
                        "to several paths.",
              .examples = {"rdma ops enable mb_0 --udp-port-range 16 --ops-timer level3",
                           "rdma ops disable mb_0", "rdma ops status mb_0",
                           "--json rdma ops status all"}},
      CommandOf<OpsOptions>{
          .path = "rdma ops enable",
          .summary = "Enable packet spraying",
          .manual = "An option that is not given keeps its last value; at first these are 16 and "
                    "default.",
          .examples = {"rdma ops enable mb_0",
                       "rdma ops enable mb_0 --udp-port-range 16 --ops-timer level3"},
          .arguments = {device_or_all<OpsOptions>(),
                        {&OpsOptions::udp_port_range,
                         {.name = "--udp-port-range",
                          .value = "N",
                          .help = "UDP source ports of a flow, 1 to 16384",
                          .check = want_number}},
                        {&OpsOptions::ops_timer,
                         {.name = "--ops-timer",
                          .value = "LEVEL",
                          .help = "time until a flow takes the next port: default (each packet), "
                                  "level1 (10 us) to level5 (200 us)",
                          .choices = {"default", "level1", "level2", "level3", "level4",
                                      "level5"}}}},
          .run = ops_enable},
      CommandOf<DeviceOptions>{.path = "rdma ops disable",
                               .summary = "Disable packet spraying",
                               .examples = {"rdma ops disable mb_0"},
                               .arguments = {device_or_all<DeviceOptions>()},
                               .run = ops_disable},
      CommandOf<DeviceOptions>{.path = "rdma ops status",
                               .summary = "Show whether packet spraying is enabled, and how",
                               .examples = {"rdma ops status mb_0", "--json rdma ops status all"},
                               .arguments = {device_or_all<DeviceOptions>()},
                               .run = ops_status},
  };
}

std::vector<Command> sr_rows() {
  return {
      Command{.path = "rdma sr",
              .summary = "Selective retransmission of lost packets",
              .manual = "Without it a sender goes back to the first lost packet and repeats all "
                        "that follow (go-back-N).",
              .examples = {"rdma sr enable mb_0", "rdma sr disable mb_0", "rdma sr status mb_0",
                           "--json rdma sr status all"}},
      CommandOf<DeviceOptions>{.path = "rdma sr enable",
                               .summary = "Enable selective retransmission",
                               .examples = {"rdma sr enable mb_0"},
                               .arguments = {device_or_all<DeviceOptions>()},
                               .run = sr_enable},
      CommandOf<DeviceOptions>{.path = "rdma sr disable",
                               .summary = "Disable selective retransmission",
                               .examples = {"rdma sr disable mb_0"},
                               .arguments = {device_or_all<DeviceOptions>()},
                               .run = sr_disable},
      CommandOf<DeviceOptions>{.path = "rdma sr status",
                               .summary = "Show whether selective retransmission is enabled",
                               .examples = {"rdma sr status mb_0", "--json rdma sr status all"},
                               .arguments = {device_or_all<DeviceOptions>()},
                               .run = sr_status},
  };
}

}  // namespace

std::vector<Command> features_commands() {
  std::vector<Command> rows = {
      {.path = "rdma",
       .summary = "Features of RDMA devices",
       .examples = {"rdma cfr enable mb_0", "rdma ops status mb_0", "rdma pcc status"}}};
  for (const std::vector<Command>& feature : {cfr_rows(), ops_rows(), sr_rows()}) {
    rows.insert(rows.end(), feature.begin(), feature.end());
  }
  return rows;
}

}  // namespace rocefs
