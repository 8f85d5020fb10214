#include "tools/mango-ctl/command_line.h"

#include <cstdio>
#include <map>
#include <sstream>
#include <type_traits>
#include <utility>

#include "core/process/standard_files.h"
#include "core/version/version.h"
#include "tools/mango-ctl/help.h"
#include "tools/mango-ctl/session.h"

namespace rocefs {
namespace {

// Refuses the empty word of a script's variable that is not set, which would read as an option that
// is not given.
void want_value(CLI::Option* option, const std::string& name) {
  option->check(CLI::Validator(
      [](const std::string& text) {
        return std::string(text.empty() ? "a value is wanted, not an empty word" : "");
      },
      "", name));
}

CLI::Option* add_argument(CLI::App& word, const Argument& argument, const Target& target) {
  CLI::Option* option = std::visit(
      [&](auto* value) -> CLI::Option* {
        if constexpr (std::is_same_v<decltype(value), bool*>) {
          return word.add_flag(argument.name, *value);
        } else {
          return word.add_option(argument.name, *value);
        }
      },
      target);
  option->type_name(argument.value);
  if (argument.positional()) option->required(!argument.optional);
  const bool wanted = argument.positional() ? argument.optional : !argument.flag();
  if (wanted && !argument.may_be_empty) {
    want_value(option, argument.name);
  }
  if (!argument.choices.empty()) option->check(CLI::IsMember(argument.choices));
  if (argument.check) {
    option->check(CLI::Validator(
        [check = argument.check](std::string& text) { return check(text); }, "", argument.name));
  }
  return option;
}

// Requires exactly one of the alternatives.
void exclude_each_other(CLI::App& word, const std::vector<CLI::Option*>& alternatives,
                        const std::string& names) {
  for (CLI::Option* one : alternatives) {
    for (CLI::Option* other : alternatives) {
      if (one != other) one->excludes(other);
    }
  }
  word.parse_complete_callback([alternatives, names] {
    for (CLI::Option* one : alternatives) {
      if (one->count() > 0) return;
    }
    throw CLI::RequiredError(names);
  });
}

}  // namespace

CommandLine::CommandLine(const CommandTable& table) : table_(table), root_("", "mango-ctl") {
  root_.set_version_flag("--version", fmt::format("mango-ctl {} (rocefs)", kVersion));
  std::map<std::string, CLI::App*> words = {{"", &root_}};
  for (const Command& row : table.rows()) {
    if (!row.path.empty()) {
      words[row.path] = words.at(row.parent())->add_subcommand(row.word());
    }
    add_row(*words[row.path], row);
  }
}

void CommandLine::add_row(CLI::App& word, const Command& row) {
  word.formatter_fn([this, &row](const CLI::App*, const std::string&, CLI::AppFormatMode) {
    return help_of(table_, row);
  });
  word.set_help_flag("-h,--help");
  want_value(word.add_option("--mount", mount_)->type_name("DIR")->take_last(), "--mount");
  word.add_flag("--json", json_);
  if (row.noun()) {
    word.require_subcommand(1);
    return;
  }
  Call call = row.prepare();
  std::vector<CLI::Option*> alternatives;
  std::string names;
  for (size_t i = 0; i < row.arguments.size(); ++i) {
    const Argument& argument = row.arguments[i];
    CLI::Option* option = add_argument(word, argument, call.targets[i]);
    if (!argument.alternative) continue;
    alternatives.push_back(option);
    names += (names.empty() ? "" : " or ") + argument.spellings().front();
  }
  if (!alternatives.empty()) exclude_each_other(word, alternatives, names);
  word.callback([this, run = std::move(call.run), uses_tree = row.uses_tree] {
    chosen_ = run;
    uses_tree_ = uses_tree;
  });
}

int CommandLine::run(int argc, char** argv) {
  try {
    root_.parse(argc, argv);
  } catch (const CLI::ParseError& asked) {
    if (asked.get_exit_code() == 0) {
      std::ostringstream text;
      root_.exit(asked, text);
      std::fputs(text.str().c_str(), stdout);
      return flush_standard_output("mango-ctl", 0);
    }
    // A misspelt word remains; CLI11's own complaint is that a word is missing.
    std::vector<std::string> rest = root_.remaining(true);
    bool missing = dynamic_cast<const CLI::RequiredError*>(&asked) != nullptr;
    complain(missing && !rest.empty() ? rest[0] + ": not understood; --help says what is"
                                      : std::string(asked.what()));
    return kUsage;
  }
  Result<NicTree> tree = uses_tree_ ? NicTree::find(mount_) : NicTree::none();
  if (!tree) {
    complain(tree.error().reason);
    return kFailed;
  }
  Session session(std::move(*tree), json_);
  chosen_(session);
  return session.finish();
}

}  // namespace rocefs
