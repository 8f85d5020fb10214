// The table of commands, and the files that its rows stand in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/mango-ctl/command.h"

namespace rocefs {

// A line for each file, in the order of --help and of the manual page. `ROW(x)` stands for
// tools/mango-ctl/x.cc, which defines x_commands().
#define ROCEFS_COMMAND_FILES(ROW) \
  ROW(features)                   \
  ROW(pcc)                        \
  ROW(new)                        \
  ROW(algo)                       \
  ROW(run)                        \
  ROW(status)                     \
  ROW(params)                     \
  ROW(card)                       \
  ROW(top)                        \
  ROW(trace)                      \
  ROW(replay)                     \
  ROW(mgmt)                       \
  ROW(project)                    \
  ROW(devices)                    \
  ROW(dmesg)

#define ROCEFS_DECLARE(NAME) std::vector<Command> NAME##_commands();
ROCEFS_COMMAND_FILES(ROCEFS_DECLARE)
#undef ROCEFS_DECLARE

class CommandTable {
 public:
  CommandTable();

  // mango-ctl itself comes first, a noun before its words.
  const std::vector<Command>& rows() const { return rows_; }
  const Command& root() const { return rows_.front(); }
  // nullptr: no such row.
  const Command* find(std::string_view path) const;
  // Words that may follow those of a noun's path.
  std::vector<const Command*> words_behind(const Command& noun) const;

 private:
  std::vector<Command> rows_;
};

}  // namespace rocefs
