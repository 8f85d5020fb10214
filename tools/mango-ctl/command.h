// Command: a row of the command line. Parser, --help, completion and the entry in mango-ctl(1) come
// from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rocefs {

class Session;

// Names that completion offers for an argument without choices.
enum class Offer {
  kNothing,
  kDevices,
  kDevicesOrAll,
  kAlgorithms,  // loaded on the device in the command line
  kParameters,  // registered by the algorithm in the command line
  kInterfaces,
  kFiles,
  kDirectories,
};

// An argument of a command: a positional one, or an option.
struct Argument {
  std::string name = {};   // "device", or all spellings of an option: "-n,--count"
  std::string value = {};  // word for an option's value, "N"; empty for a flag
  std::string help = {};   // with the marks of markup.h
  Offer offer = Offer::kNothing;
  std::vector<std::string> choices = {};
  bool optional = false;      // only for positional arguments; options always are
  bool may_be_empty = false;  // an option to which an empty word is a value
  bool alternative = false;   // exactly one of a command's alternatives must be given
  std::string (*check)(const std::string& value) = nullptr;  // reason of a refusal; empty: accepted

  // Set by describe().
  bool repeated = false;
  std::string initial = {};  // value of an option that is not given, unless that is 0 or empty

  bool positional() const { return !name.starts_with('-'); }
  bool flag() const { return !positional() && value.empty(); }
  // "-n" and "--count"; a positional's name.
  std::vector<std::string> spellings() const;
};

// Place of an argument's value.
using Target = std::variant<std::string*, bool*, double*, uint64_t*, std::vector<std::string>*>;

// One execution of a command: a target for each argument, in their order, and the function.
struct Call {
  std::vector<Target> targets;
  std::function<void(Session&)> run;
};

struct Command {
  std::string path = {};                   // words, "rdma pcc start"; empty for mango-ctl itself
  std::string summary = {};                // one line
  std::string manual = {};                 // further sentences, with the marks of markup.h
  std::vector<std::string> examples = {};  // without "mango-ctl" in front
  std::vector<Argument> arguments = {};
  std::function<Call()> prepare = {};  // empty for a noun, which other words must follow
  bool uses_tree = true;               // false: works without a mount

  bool noun() const { return !prepare; }
  std::string word() const;    // the last of the path
  std::string parent() const;  // path without the last word
};

template <class Options>
struct ArgumentOf {
  std::variant<std::string Options::*, bool Options::*, double Options::*, uint64_t Options::*,
               std::vector<std::string> Options::*>
      member;
  Argument about;
};

// Sets the members that follow from the target: repeated and initial.
void describe(Argument& argument, const Target& target);

// Row of a command as it is written. Values of the arguments stand in the command's own struct,
// Options, whose initial values are those of arguments that are not given.
template <class Options>
struct CommandOf {
  std::string path;
  std::string summary;
  std::string manual = {};
  std::vector<std::string> examples;
  std::vector<ArgumentOf<Options>> arguments = {};
  void (*run)(Session&, const Options&);
  bool uses_tree = true;

  operator Command() const {
    auto prepare = [rows = arguments, function = run] {
      auto options = std::make_shared<Options>();
      Call call{{}, [function, options](Session& session) { function(session, *options); }};
      for (const ArgumentOf<Options>& row : rows) {
        call.targets.push_back(std::visit(
            [&](auto member) -> Target { return &(options.get()->*member); }, row.member));
      }
      return call;
    };
    Command command{path, summary, manual, examples, {}, prepare, uses_tree};
    Call unused = prepare();
    for (size_t i = 0; i < arguments.size(); ++i) {
      command.arguments.push_back(arguments[i].about);
      describe(command.arguments.back(), unused.targets[i]);
    }
    return command;
  }
};

// Options of commands that have none, and of those that have a device only.
struct NoOptions {};
struct DeviceOptions {
  std::string device;
};

std::string refuse_all(const std::string& device);
std::string want_number(const std::string& text);

// Device argument; Options holds its value as `device`.
template <class Options>
ArgumentOf<Options> one_device() {
  return {
      &Options::device,
      {.name = "device", .help = "its name, mb_0", .offer = Offer::kDevices, .check = refuse_all}};
}
template <class Options>
ArgumentOf<Options> device_or_all(std::string help = "its name, mb_0, or all") {
  return {&Options::device,
          {.name = "device", .help = std::move(help), .offer = Offer::kDevicesOrAll}};
}

// Algorithm argument; Options holds its value as `algorithm`.
template <class Options>
ArgumentOf<Options> algorithm_argument(std::string help = "one of `rdma pcc algo list`") {
  return {&Options::algorithm,
          {.name = "algorithm", .help = std::move(help), .offer = Offer::kAlgorithms}};
}

// Options that every word accepts.
const std::vector<Argument>& common_options();

}  // namespace rocefs
