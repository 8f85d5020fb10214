// CommandLine: the parser of the table's rows. One of them is chosen and run.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "tools/mango-ctl/commands.h"

namespace rocefs {

class CommandLine {
 public:
  // The table must outlive the parser.
  explicit CommandLine(const CommandTable& table);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // Parses, finds the tree, runs the chosen command; the exit status.
  int run(int argc, char** argv);

 private:
  void add_row(CLI::App& word, const Command& row);

  const CommandTable& table_;
  CLI::App root_;
  std::string mount_;
  bool json_ = false;
  std::function<void(Session&)> chosen_;
  bool uses_tree_ = true;  // that command does
};

}  // namespace rocefs
