// rdma pcc: modes, algorithms and their runs.
#include "tools/mango-ctl/pcc.h"

#include <cerrno>

#include "core/base/text.h"
#include "tools/mango-ctl/commands.h"

namespace rocefs {

Result<bool> pcc_is_active(const NicTree& tree, const std::string& device) {
  Result<std::string> state = tree.value(device_file(device, "pcc/state"));
  if (!state) return state.error();
  return *state == "active";
}

Result<std::vector<std::string>> active_qps(const NicTree& tree, const std::string& device) {
  std::string directory = device_file(device, "pcc/qps");
  if (!tree.has(directory)) return errorf(ENODEV, "{}: no such device", device);
  return tree.counted(directory);
}

bool read_qp(const NicTree& tree, const std::string& device, const std::string& qp,
             QpFiles& files) {
  DeviceReader reader(tree, device);
  std::string directory = "pcc/qps/" + qp + "/";
  files.window = reader.text(directory + "window");
  files.cnp = reader.text(directory + "cnp");
  files.ctrl_count = reader.text(directory + "ctrl_count");
  files.rtt_ns = reader.text(directory + "rtt_ns");
  files.rtt_timeouts = reader.text(directory + "rtt_timeouts");
  files.rate = reader.text(directory + "rate");
  files.pid = reader.text(directory + "pid");
  files.comm = reader.text(directory + "comm");
  files.algo = reader.text(directory + "algo");
  return static_cast<bool>(reader.outcome());
}

Json qp_json(const std::string& qp, const QpFiles& files) {
  return {{"qp", number_or_text(qp)},
          {"pid", number_or_text(files.pid)},
          {"process", files.comm},
          {"algorithm", name_or_null(files.algo)},
          {"ctrl_count", number_or_text(files.ctrl_count)},
          {"cnp", number_or_text(files.cnp)},
          {"window", files.window == kNoWindow ? Json(nullptr) : number_or_text(files.window)},
          {"rtt_ns", number_or_text(files.rtt_ns)},
          {"rtt_timeouts", number_or_text(files.rtt_timeouts)},
          {"rate_bps", number_or_text(files.rate)}};
}

namespace {

std::string mode_name(const std::string& mode) {
  if (mode == "soc") return "SoC";
  return mode == "host" ? "Host" : mode;
}

void set_mode(Session& session, const std::string& device, const std::string& mode) {
  session.each_device(device, [&](const std::string& name) -> Result<void> {
    Result<void> stored = session.tree().store(device_file(name, "pcc/mode"), mode);
    if (!stored) return stored;
    session.print(fmt::format(
        "Set PCC mode to {} mode for device {}\nPlease reload mango-drivers to apply PCC mode\n",
        mode_name(mode), name));
    session.add({{"device", name}, {"mode_set", mode}});
    return {};
  });
}

void get_mode(Session& session, const std::string& device) {
  session.each_device(device, [&](const std::string& name) {
    DeviceReader files(session.tree(), name);
    std::string mode = files.text("pcc/mode_active");
    session.print(fmt::format("{}: {} mode\n", name, mode_name(mode)));
    if (session.json()) {
      session.add({{"device", name}, {"mode", mode}, {"mode_set", files.text("pcc/mode")}});
    }
    return files.outcome();
  });
}

void list_devices(Session& session) {
  for (const std::string& name : session.tree().devices()) {
    if (!session.tree().has(device_file(name, "pcc"))) continue;
    session.print(name + "\n");
    session.add({{"device", name}});
  }
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

// Nothing changes anywhere unless every device has the algorithm.
void apply(Session& session, const std::string& device, const std::string& algorithm) {
  session.each_device(device, [&](const std::string& name) {
    return must_be_loaded(session.tree(), name, algorithm);
  });
  if (session.failed()) return;
  session.each_device(device, [&](const std::string& name) {
    return session.tree().store(device_file(name, "pcc/algo"), algorithm);
  });
}

struct StartOptions {
  std::string device, num_threads, interval_us;
};

// A run that does not come about leaves its options as they were.
Result<void> start_one(Session& session, const std::string& name, const StartOptions& options) {
  const NicTree& tree = session.tree();
  Result<bool> active = pcc_is_active(tree, name);
  if (!active) return active.error();
  if (*active) return Error{EBUSY, "PCC is active already"};
  std::vector<Assignment> wanted, before;
  auto want = [&](const char* knob, const std::string& value) -> Result<void> {
    if (value.empty()) return {};
    std::string path = device_file(name, knob);
    Result<std::string> old = tree.value(path);
    if (!old) return old.error();
    wanted.push_back({path, value});
    before.push_back({path, *old});
    return {};
  };
  Result<void> done = want("pcc/num_threads", options.num_threads);
  if (done) done = want("pcc/interval_us", options.interval_us);
  if (done && !wanted.empty()) done = tree.store_together(wanted);
  if (!done) return done;
  done = tree.store(device_file(name, "pcc/state"), "start");
  if (!done && !before.empty()) (void)!tree.store_together(before);
  return done;
}

void stop(Session& session, const std::string& device) {
  session.each_device(device, [&](const std::string& name) -> Result<void> {
    Result<bool> active = pcc_is_active(session.tree(), name);
    if (active && !*active) session.notice(name + ": PCC is not active");
    return session.tree().store(device_file(name, "pcc/state"), "stop");
  });
}

// The block of a device says it in a line of its own, nowhere else.
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
  Result<std::vector<std::string>> numbers = active_qps(tree, name);
  if (!numbers) return numbers.error();
  for (const std::string& qp : *numbers) {
    QpFiles one;
    if (read_qp(tree, name, qp, one)) qps.push_back(qp_json(qp, one));
  }
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

// Every active device in full, then all of them in a table.
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

void status(Session& session, const std::string& device) {
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

// Of the device's card: what it answers is printed.
void ask_card(Session& session, const std::string& device, const std::string& question) {
  session.each_device(device, [&](const std::string& name) -> Result<void> {
    Result<std::string> reply = session.tree().ask(device_file(name, "pcc/rpc"), question);
    if (!reply) return reply.error();
    session.print(*reply + "\n");
    session.add({{"device", name}, {"reply", *reply}});
    return {};
  });
}

struct CommandWords {
  std::string device, word;
};

void add_mode_commands(CommandLine& line, CLI::App& pcc) {
  CLI::App& mode = line.group(pcc, "mode", "where algorithms run: on the card or in programs",
                              "rdma pcc mode set all soc\nrdma pcc mode get all");
  auto set = line.options<CommandWords>();
  CLI::App& set_command =
      line.command(mode, "set", "to be applied when the driver is reloaded",
                   "rdma pcc mode set all soc\nrdma pcc mode set mb_0 host",
                   [=](Session& session) { set_mode(session, set->device, set->word); });
  add_device_or_all(set_command, set->device);
  set_command.add_option("mode", set->word, "soc or host")
      ->required()
      ->type_name("")
      ->check(CLI::IsMember({"soc", "host"}));

  auto get = line.options<CommandWords>();
  CLI::App& get_command = line.command(mode, "get", "the mode since the driver was last loaded",
                                       "rdma pcc mode get all",
                                       [=](Session& session) { get_mode(session, get->device); });
  add_device_or_all(get_command, get->device);
}

void add_run_commands(CommandLine& line, CLI::App& pcc) {
  auto applied = line.options<CommandWords>();
  CLI::App& apply_command =
      line.command(pcc, "apply", "choose the algorithm, also while PCC is active",
                   "rdma pcc apply mb_0 aimd\nrdma pcc apply all dcqcn",
                   [=](Session& session) { apply(session, applied->device, applied->word); });
  add_device_or_all(apply_command, applied->device);
  apply_command.add_option("algorithm", applied->word, "one of `algo list`")
      ->required()
      ->type_name("");

  auto started = line.options<StartOptions>();
  CLI::App& start_command =
      line.command(pcc, "start", "let the algorithm set the windows",
                   "rdma pcc start mb_0\nrdma pcc start all\nrdma pcc start mb_0 --num-threads 4",
                   [=](Session& session) {
                     session.each_device(started->device, [&](const std::string& name) {
                       return start_one(session, name, *started);
                     });
                   });
  add_device_or_all(start_command, started->device);
  start_command.add_option("--num-threads", started->num_threads, "poller threads, 1 to 64")
      ->type_name("N");
  start_command.add_option("--interval-us", started->interval_us, "between two calls for a QP")
      ->type_name("N");

  auto stopped = line.options<std::string>();
  CLI::App& stop_command = line.command(pcc, "stop", "windows without limit again, or CFR's",
                                        "rdma pcc stop mb_0\nrdma pcc stop all",
                                        [=](Session& session) { stop(session, *stopped); });
  add_device_or_all(stop_command, *stopped);

  auto shown = line.options<std::string>();
  CLI::App& status_command =
      line.command(pcc, "status", "what runs, on which queue pairs, with which parameters",
                   "rdma pcc status\nrdma pcc status mb_0\n--json rdma pcc status",
                   [=](Session& session) { status(session, *shown); });
  status_command.add_option("device", *shown, "its name, mb_0; else all that are active")
      ->type_name("");
}

void add_card_commands(CommandLine& line, CLI::App& pcc) {
  auto pinged = line.options<std::string>();
  CLI::App& ping =
      line.command(pcc, "ping", "whether the card's PCC daemon answers", "rdma pcc ping mb_0",
                   [=](Session& session) { ask_card(session, *pinged, "ping"); });
  add_device(ping, *pinged);

  auto echoed = line.options<CommandWords>();
  CLI::App& echo = line.command(
      pcc, "echo", "what the card's PCC daemon sends back", "rdma pcc echo \"Hello\" mb_0",
      [=](Session& session) { ask_card(session, echoed->device, "echo " + echoed->word); });
  echo.add_option("text", echoed->word, "any text")->required()->type_name("");
  add_device(echo, echoed->device);
}

}  // namespace

void add_pcc_commands(CommandLine& line, CLI::App& rdma) {
  CLI::App& pcc = line.group(rdma, "pcc", "programmable congestion control",
                             "rdma pcc apply mb_0 aimd\nrdma pcc start mb_0\nrdma pcc status mb_0");
  add_mode_commands(line, pcc);
  line.command(pcc, "dev", "the devices, one per line", "rdma pcc dev",
               [](Session& session) { list_devices(session); });
  add_algo_commands(line, pcc);
  add_run_commands(line, pcc);
  add_params_commands(line, pcc);
  add_card_commands(line, pcc);
  add_top_command(line, pcc);
  add_trace_command(line, pcc);
}

}  // namespace rocefs
