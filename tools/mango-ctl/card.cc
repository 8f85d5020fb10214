// rdma pcc ping, echo and dump: questions to the PCC daemon of a card.
#include <cerrno>

#include "core/base/kstrto.h"
#include "core/base/text.h"
#include "tools/mango-ctl/commands.h"
#include "tools/mango-ctl/pcc.h"
#include "tools/mango-ctl/session.h"

namespace rocefs {
namespace {

struct EchoOptions {
  std::string text, device;
};

// Prints the reply of the device's card.
void ask_card(Session& session, const std::string& device, const std::string& question) {
  session.each_device(device, [&](const std::string& name) -> Result<void> {
    Result<std::string> reply = session.tree().ask(device_file(name, "pcc/rpc"), question);
    if (!reply) return reply.error();
    session.print(*reply + "\n");
    session.add({{"device", name}, {"reply", *reply}});
    return {};
  });
}

void ping_card(Session& session, const DeviceOptions& options) {
  ask_card(session, options.device, "ping");
}

void echo_card(Session& session, const EchoOptions& options) {
  ask_card(session, options.device, "echo " + options.text);
}

struct DumpOptions {
  std::string device, qp;
};

// Object of a dump: lines NAME=VALUE are parameters, OFFSET: HEX other octets.
Json dump_json(const std::string& device, const std::string& qp, std::string_view text) {
  Json parameters = Json::object(), state = Json::object();
  for (std::string_view line : split(text, "\n")) {
    if (!line.starts_with("  ")) continue;
    line.remove_prefix(2);
    const size_t sign = line.find('='), colon = line.find(": ");
    if (sign != line.npos) {
      parameters[std::string(line.substr(0, sign))] =
          number_or_text(std::string(line.substr(sign + 1)));
    } else if (colon != line.npos) {
      state[std::string(line.substr(0, colon))] = line.substr(colon + 2);
    }
  }
  return {{"device", device},
          {"qp", number_or_text(qp)},
          {"parameters", std::move(parameters)},
          {"state", std::move(state)}};
}

void dump_qps(Session& session, const DumpOptions& options) {
  session.each_device(options.device, [&](const std::string& name) -> Result<void> {
    Result<std::string> state = session.tree().value(device_file(name, "pcc/state"));
    if (!state) return state.error();
    if (*state != "active") return wrong_state("PCC is not active");
    std::vector<std::string> numbers = {options.qp};
    if (options.qp.empty()) {
      Result<std::vector<QpFiles>> qps = read_qps(session.tree(), name);
      if (!qps) return qps.error();
      numbers.clear();
      for (const QpFiles& qp : *qps) numbers.push_back(qp.qp);
    }
    for (const std::string& qp : numbers) {
      Result<std::string> text = session.tree().ask(device_file(name, "pcc/rpc"), "dump " + qp);
      // A queue pair of the list may have gone since.
      if (!text && text.error().code == ENOENT && options.qp.empty()) continue;
      if (!text) return text.error();
      session.print(*text + "\n");
      session.add(dump_json(name, qp, *text));
    }
    return {};
  });
}

std::string check_qp(const std::string& text) {
  return kstrtou64(text, 10) ? "" : fmt::format("'{}': the number of a queue pair is wanted", text);
}

// Lets a debugger hold the card, and prints the command that attaches one to the process with the
// plugins.
void debug_card(Session& session, const DeviceOptions& options) {
  session.each_device(options.device, [&](const std::string& name) -> Result<void> {
    Result<std::string> pid = session.tree().value(device_file(name, "pcc/card_pid"));
    if (!pid) return pid.error();
    if (*pid == "0") {
      return wrong_state(
          "mango-pccd does not run: it does once a plugin is loaded, or PCC started");
    }
    Result<void> allowed = session.tree().store(device_file(name, "pcc/debug"), "1");
    if (!allowed) return allowed;
    session.print(fmt::format("gdb -p {}\n", *pid));
    session.add({{"device", name}, {"pid", std::stoul(*pid)}});
    return {};
  });
}

}  // namespace

std::vector<Command> card_commands() {
  return {
      CommandOf<DumpOptions>{
          .path = "rdma pcc dump",
          .summary = "Show what the algorithm holds of each queue pair",
          .manual = "The present values of its parameters come first, then the octets of its block "
                    "that are no parameters, in hex: state of the algorithm. PCC must be active.",
          .examples = {"rdma pcc dump mb_0", "rdma pcc dump mb_0 --qp 17"},
          .arguments = {one_device<DumpOptions>(),
                        {&DumpOptions::qp,
                         {.name = "--qp",
                          .value = "N",
                          .help = "this queue pair alone",
                          .check = check_qp}}},
          .run = dump_qps},
      CommandOf<DeviceOptions>{.path = "rdma pcc ping",
                               .summary = "Ask whether the card's PCC daemon answers",
                               .examples = {"rdma pcc ping mb_0"},
                               .arguments = {one_device<DeviceOptions>()},
                               .run = ping_card},
      CommandOf<EchoOptions>{
          .path = "rdma pcc echo",
          .summary = "Have the card's PCC daemon send a text back",
          .examples = {"rdma pcc echo \"Hello\" mb_0"},
          .arguments = {{&EchoOptions::text, {.name = "text", .help = "any text"}},
                        one_device<EchoOptions>()},
          .run = echo_card},
      CommandOf<DeviceOptions>{
          .path = "rdma pcc debug",
          .summary = "Print the command that debugs a card's plugins",
          .manual =
              "Breakpoints in a plugin are set by its function or by FILE:LINE; `algo cross-build` "
              "compiles with -g. From now on nothing times out while a debugger is attached, until "
              "0 is "
              "stored to pcc/debug: other commands for the device wait. Traffic goes on with the "
              "windows that were set last; under the virtual clock it stands.",
          .examples = {"rdma pcc debug mb_0"},
          .arguments = {one_device<DeviceOptions>()},
          .run = debug_card},
  };
}

}  // namespace rocefs
