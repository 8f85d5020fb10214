// rdma pcc ping and echo: questions to the PCC daemon of a card.
#include <cerrno>

#include "tools/mango-ctl/commands.h"
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

// Lets a debugger hold the card, and prints the command that attaches one to the process with the
// plugins.
void debug_card(Session& session, const DeviceOptions& options) {
  session.each_device(options.device, [&](const std::string& name) -> Result<void> {
    Result<std::string> pid = session.tree().value(device_file(name, "pcc/card_pid"));
    if (!pid) return pid.error();
    if (*pid == "0") {
      return Error{ESRCH,
                   "mango-pccd does not run: it does once a plugin is loaded, or PCC started"};
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
