// rdma cfr, ops and sr: what a NIC does about congestion and loss by itself.

#include "tools/mango-ctl/commands.h"

namespace rocefs {
namespace {

struct Feature {
  const char* word;
  const char* doc;
};

constexpr Feature kCfr{"cfr", "CNPs for what arrives out of order, and windows that obey them"};
constexpr Feature kOps{"ops", "packet spraying: the packets of a flow take several paths"};
constexpr Feature kSr{"sr", "selective retransmission: only what was lost is sent again"};

const char* yes_or_no(bool enabled) {
  return enabled ? "Yes" : "No";
}

void enable(Session& session, const std::string& device, const Feature& feature, bool enabled) {
  session.each_device(device, [&](const std::string& name) {
    return session.tree().store(device_file(name, std::string(feature.word) + "/enable"),
                                enabled ? "1" : "0");
  });
}

struct OpsOptions {
  std::string device, udp_port_range, ops_timer;
};

// What is not said stays as it is.
void enable_ops(Session& session, const OpsOptions& options) {
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

// The reference has the device's name in front of CFR alone; with `all` it is needed elsewhere too.
std::string prefix(const std::string& asked, const std::string& name) {
  return asked == "all" ? name + ": " : "";
}

void cfr_status(Session& session, const std::string& device) {
  session.each_device(device, [&](const std::string& name) {
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

void ops_status(Session& session, const std::string& device) {
  session.each_device(device, [&](const std::string& name) {
    DeviceReader files(session.tree(), name);
    bool enabled = files.flag("ops/enable");
    uint64_t ports = files.number("ops/udp_port_range");
    std::string timer = files.text("ops/ops_timer"), before = prefix(device, name);
    session.print(fmt::format("{0}OPS Enabled: {1}\n{0}UDP Port Range: {2}\n{0}OPS Timer: {3}\n",
                              before, yes_or_no(enabled), ports, timer));
    session.add(
        {{"device", name}, {"enabled", enabled}, {"udp_port_range", ports}, {"ops_timer", timer}});
    return files.outcome();
  });
}

void sr_status(Session& session, const std::string& device) {
  session.each_device(device, [&](const std::string& name) {
    DeviceReader files(session.tree(), name);
    bool enabled = files.flag("sr/enable");
    session.print(
        fmt::format("{}Selective Repeat Enabled: {}\n", prefix(device, name), yes_or_no(enabled)));
    if (session.json()) {
      session.add({{"device", name},
                   {"enabled", enabled},
                   {"reorder_window", number_or_text(files.text("sr/reorder_window"))}});
    }
    return files.outcome();
  });
}

using Status = void (*)(Session&, const std::string&);

// enable (but for OPS, which has options), disable and status.
CLI::App& add_feature(CommandLine& line, CLI::App& rdma, const Feature& feature, Status status) {
  std::string path = std::string("rdma ") + feature.word;
  CLI::App& noun = line.group(rdma, feature.word, feature.doc,
                              path + " enable mb_0\n" + path + " disable mb_0\n" + path +
                                  " status mb_0\n--json " + path + " status all");
  for (bool enabled : {true, false}) {
    if (enabled && feature.word == kOps.word) continue;
    auto device = line.options<std::string>();
    const char* word = enabled ? "enable" : "disable";
    CLI::App& command = line.command(
        noun, word, enabled ? "turn it on" : "turn it off", path + " " + word + " mb_0",
        [=](Session& session) { enable(session, *device, feature, enabled); });
    add_device_or_all(command, *device);
  }
  auto device = line.options<std::string>();
  CLI::App& command = line.command(noun, "status", "say whether it is on",
                                   path + " status mb_0\n--json " + path + " status all",
                                   [=](Session& session) { status(session, *device); });
  add_device_or_all(command, *device);
  return noun;
}

}  // namespace

void add_feature_commands(CommandLine& line, CLI::App& rdma) {
  add_feature(line, rdma, kCfr, cfr_status);
  CLI::App& ops = add_feature(line, rdma, kOps, ops_status);
  add_feature(line, rdma, kSr, sr_status);

  auto options = line.options<OpsOptions>();
  CLI::App& command = line.command(ops, "enable", "turn it on; what is not said stays as it is",
                                   "rdma ops enable mb_0\n"
                                   "rdma ops enable mb_0 --udp-port-range 16 --ops-timer level3",
                                   [=](Session& session) { enable_ops(session, *options); });
  add_device_or_all(command, options->device);
  command.add_option("--udp-port-range", options->udp_port_range, "UDP ports of a flow (16)")
      ->type_name("N");
  command
      .add_option("--ops-timer", options->ops_timer,
                  "when a flow moves on: default, level1 to level5")
      ->type_name("LEVEL");
}

}  // namespace rocefs
