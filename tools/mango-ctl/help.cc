#include "tools/mango-ctl/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "tools/mango-ctl/markup.h"

namespace rocefs {
namespace {

constexpr size_t kColumn = 29;  // where explanations begin

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

// "<DEVICE>", "{`soc` | `host`}".
std::string positional_value(const Argument& argument) {
  std::vector<std::string> words;
  if (argument.choices.empty()) words.push_back("<" + upper(argument.name) + ">");
  for (const std::string& choice : argument.choices) words.push_back("`" + choice + "`");
  if (argument.offer == Offer::kDevicesOrAll) words.push_back("`all`");
  std::string text = words[0];
  for (size_t i = 1; i < words.size(); ++i) text += " | " + words[i];
  return words.size() > 1 ? "{" + text + "}" : text;
}

std::string spelt(const Argument& option, const std::string& spellings) {
  if (option.flag()) return spellings;
  return spellings + " <" + option.value + ">" + (option.repeated ? "..." : "");
}

std::string in_usage(const Argument& argument) {
  if (argument.positional()) {
    std::string text = positional_value(argument);
    return argument.optional ? "[" + text + "]" : text;
  }
  return spelt(argument, "`" + argument.spellings().front() + "`");
}

void add_lines(std::string& out, const std::string& name, const std::string& words) {
  std::string line = "  " + plain(name);
  if (line.size() + 1 >= kColumn) line += "\n";
  line.resize(line.ends_with('\n') ? line.size() + kColumn : kColumn, ' ');
  out += line + (words.empty() ? "\n" : filled(plain(words), kColumn));
}

void add_arguments(std::string& out, const std::string& title,
                   const std::vector<Argument>& arguments, bool positional) {
  std::string lines;
  for (const Argument& argument : arguments) {
    if (argument.positional() != positional) continue;
    std::string words = argument.help;
    if (!argument.initial.empty()) words += fmt::format(" (default {})", argument.initial);
    add_lines(lines, label_of(argument), words);
  }
  if (!lines.empty()) out += "\n" + title + ":\n" + lines;
}

}  // namespace

std::string label_of(const Argument& argument) {
  if (argument.positional()) return positional_value(argument);
  std::string spellings;
  for (const std::string& one : argument.spellings()) {
    spellings += (spellings.empty() ? "`" : ", `") + one + "`";
  }
  return spelt(argument, spellings);
}

std::string usage_of(const Command& command) {
  std::string text = command.path.empty() ? "" : "`" + command.path + "`";
  if (command.noun()) return (text.empty() ? "[<OPTIONS>]" : text) + " <COMMAND> ...";
  std::string alternatives;
  for (const Argument& argument : command.arguments) {
    if (argument.alternative) {
      alternatives += (alternatives.empty() ? "" : " | ") + in_usage(argument);
    } else {
      text += argument.positional() ? " " + in_usage(argument) : " [" + in_usage(argument) + "]";
    }
  }
  if (!alternatives.empty()) text += " {" + alternatives + "}";
  return text;
}

std::string help_of(const CommandTable& table, const Command& command) {
  std::string out = plain(command.summary) + "\n";
  out += "Usage: mango-ctl " + plain(usage_of(command)) + "\n";
  if (!command.manual.empty()) out += "\n" + filled(plain(command.manual));
  std::string words;
  for (const Command* word : table.words_behind(command)) {
    add_lines(words, word->word(), word->summary);
  }
  if (!words.empty()) out += "\nCommands:\n" + words;
  add_arguments(out, "Arguments", command.arguments, true);
  std::vector<Argument> options = command.arguments;
  options.insert(options.end(), common_options().begin(), common_options().end());
  add_arguments(out, "Options", options, false);
  out += "\nExamples:\n";
  for (const std::string& example : command.examples) out += "  mango-ctl " + example + "\n";
  return out;
}

}  // namespace rocefs
