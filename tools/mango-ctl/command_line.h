// CommandLine: the words that mango-ctl understands. Each noun adds its own; one of them is chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

  // Where a command's arguments are put. They live as long as the line, which holds on to them.
  template <class T>
  std::shared_ptr<T> options(T initial = {}) {
    auto kept = std::make_shared<T>(std::move(initial));
    options_.push_back(kept);
    return kept;
  }

  // Parses, finds the tree, runs what was chosen; the exit status.
  int run(int argc, char** argv);

 private:
  void add_common_options(CLI::App& word);

  std::vector<std::shared_ptr<void>> options_;
  CLI::App root_;
  std::string mount_;
  bool json_ = false;
  Run chosen_;
};

// The positional arguments that most commands have.
CLI::Option* add_device(CLI::App& command, std::string& device);
CLI::Option* add_device_or_all(CLI::App& command, std::string& device);

}  // namespace rocefs
