// rdma pcc ping and echo: questions to the PCC daemon of a card.
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
  };
}

}  // namespace rocefs
