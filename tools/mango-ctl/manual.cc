#include "tools/mango-ctl/manual.h"

#include <fmt/format.h>

#include "tools/mango-ctl/help.h"
#include "tools/mango-ctl/markup.h"

namespace rocefs {
namespace {

std::string sentences(const Command& command) {
  std::string text = command.summary + ".";
  if (!command.manual.empty()) text += " " + command.manual;
  return roff(text) + "\n";
}

// Devices are explained once, in DESCRIPTION.
bool is_device(const Argument& argument) {
  return argument.offer == Offer::kDevices || argument.offer == Offer::kDevicesOrAll;
}

std::string entry_of(const Command& command) {
  std::string out = ".TP\n" + roff(usage_of(command)) + "\n" + sentences(command) + ".RS\n";
  for (const Argument& argument : command.arguments) {
    if (is_device(argument)) continue;
    std::string words = argument.help;
    if (!argument.initial.empty()) words += fmt::format(" (default {})", argument.initial);
    out += ".TP\n" + roff(label_of(argument)) + "\n" + roff(words) + "\n";
  }
  out += ".PP\n.EX\n";
  for (const std::string& example : command.examples) {
    out += roff_literal("mango-ctl " + example) + "\n";
  }
  return out + ".EE\n.RE\n";
}

}  // namespace

std::string manual_of(const CommandTable& table) {
  std::string out;
  for (const Command& row : table.rows()) {
    if (row.path.empty() || (!row.noun() && !row.parent().empty())) continue;
    out += ".SS " + roff(row.path) + "\n";
    if (!row.noun()) {
      out += entry_of(row);
      continue;
    }
    out += sentences(row);
    for (const Command* command : table.words_behind(row)) {
      if (!command->noun()) out += entry_of(*command);
    }
  }
  return out;
}

}  // namespace rocefs
