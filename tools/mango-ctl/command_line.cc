#include "tools/mango-ctl/command_line.h"

namespace rocefs {
namespace {

constexpr const char* kVersion = "mango-ctl 0.1.0 (rocefs)";
constexpr const char* kEnvironment =
    R"(Which tree: --mount, else $ROCEFS_MOUNT, else $SYSFS_PATH if it has one, else /sys if it has one
(inside `rocefs enter`), else the only rocefs that is mounted.

Exit status: 0 done, 1 failed, 2 usage, 3 no such device, 4 busy or in the wrong state.)";

std::string footer(const std::string& examples) {
  std::string text = "Examples:\n";
  for (size_t at = 0; at < examples.size();) {
    size_t end = std::min(examples.find('\n', at), examples.size());
    text += "  mango-ctl " + examples.substr(at, end - at) + "\n";
    at = end + 1;
  }
  text.pop_back();
  return text;
}

}  // namespace

CommandLine::CommandLine() : root_("Configures and watches the RoCE NICs of a mounted rocefs.") {
  root_.name("mango-ctl");
  root_.require_subcommand(1);
  root_.set_version_flag("--version", kVersion, "which mango-ctl this is");
  root_.footer(
      footer("dev list\nrdma cfr enable mb_0\nrdma pcc status\n--json rdma pcc status mb_0") +
      "\n\n" + kEnvironment);
  add_common_options(root_);
}

void CommandLine::add_common_options(CLI::App& word) {
  word.set_help_flag("-h,--help", "this text");
  word.add_option("--mount", mount_, "which rocefs")->type_name("DIR")->take_last();
  word.add_flag("--json", json_, "print what is read as an array of JSON objects");
}

CLI::App& CommandLine::group(CLI::App& parent, const std::string& name, const std::string& doc,
                             const std::string& examples) {
  CLI::App& word = *parent.add_subcommand(name, doc);
  word.require_subcommand(1);
  word.footer(footer(examples));
  add_common_options(word);
  return word;
}

CLI::App& CommandLine::command(CLI::App& parent, const std::string& name, const std::string& doc,
                               const std::string& examples, Run run) {
  CLI::App& word = *parent.add_subcommand(name, doc);
  word.footer(footer(examples));
  word.callback([this, run = std::move(run)] { chosen_ = run; });
  add_common_options(word);
  return word;
}

int CommandLine::run(int argc, char** argv) {
  try {
    root_.parse(argc, argv);
  } catch (const CLI::ParseError& asked) {
    if (asked.get_exit_code() == 0) return root_.exit(asked);
    // Where a word is missing and another stands in its place, that one is what is wrong.
    std::vector<std::string> rest = root_.remaining(true);
    bool missing = dynamic_cast<const CLI::RequiredError*>(&asked) != nullptr;
    complain(missing && !rest.empty() ? rest[0] + ": not understood; --help says what is"
                                      : std::string(asked.what()));
    return kUsage;
  }
  Result<NicTree> tree = NicTree::find(mount_);
  if (!tree) {
    complain(tree.error().reason);
    return kFailed;
  }
  Session session(std::move(*tree), json_);
  chosen_(session);
  return session.finish();
}

CLI::Option* add_device(CLI::App& command, std::string& device) {
  auto check = [](const std::string& name) {
    return name == "all" ? std::string("one device is wanted, not all") : std::string();
  };
  return command.add_option("device", device, "its name, mb_0")
      ->required()
      ->type_name("")
      ->check(CLI::Validator(check, "", "device"));
}

CLI::Option* add_device_or_all(CLI::App& command, std::string& device) {
  return command.add_option("device", device, "its name, mb_0, or all")->required()->type_name("");
}

}  // namespace rocefs
