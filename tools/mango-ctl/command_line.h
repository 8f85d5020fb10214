// CommandLine: the words that mango-ctl understands. Each noun adds its own; one of them is chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "tools/mango-ctl/session.h"

namespace rocefs {

class CommandLine {
 public:
  using Run = std::function<void(Session&)>;

  CommandLine();

  CLI::App& root() { return root_; }
  // A word that wants another one behind it. `examples` stand at the end of its help.
  CLI::App& group(CLI::App& parent, const std::string& name, const std::string& doc,
                  const std::string& examples);
  // A word that does something.
  CLI::App& command(CLI::App& parent, const std::string& name, const std::string& doc,
                    const std::string& examples, Run run);

  // Parses, finds the tree, runs what was chosen; the exit status.
  int run(int argc, char** argv);

 private:
  void add_common_options(CLI::App& word);

  CLI::App root_;
  std::string mount_;
  bool json_ = false;
  Run chosen_;
};

// The positional arguments that most commands have.
CLI::Option* add_device(CLI::App& command, std::string& device);
CLI::Option* add_device_or_all(CLI::App& command, std::string& device);

}  // namespace rocefs
