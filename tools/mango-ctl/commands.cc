#include "tools/mango-ctl/commands.h"

#include <algorithm>
#include <utility>

namespace rocefs {
namespace {

Command mango_ctl() {
  return {
      .summary = "Configure and watch the RoCE NICs of a mounted rocefs",
      .manual =
          "The mount is the one that --mount names, else $ROCEFS_MOUNT, else $SYSFS_PATH if a "
          "rocefs is there, else /sys if one is there (inside `rocefs enter`), else the only "
          "rocefs that is mounted.\n\nExit status: 0 done, 1 failed, 2 usage, 3 no such device, 4 "
          "busy or in the wrong state.",
      .examples = {"dev list", "rdma cfr enable mb_0", "rdma pcc status",
                   "--json rdma pcc status mb_0"},
      .arguments = {{.name = "--version", .help = "print the version and exit"}},
  };
}

}  // namespace

CommandTable::CommandTable() : rows_{mango_ctl()} {
#define ROCEFS_ADD(NAME) \
  for (Command & row : NAME##_commands()) rows_.push_back(std::move(row));
  ROCEFS_COMMAND_FILES(ROCEFS_ADD)
#undef ROCEFS_ADD
}

const Command* CommandTable::find(std::string_view path) const {
  auto row = std::find_if(rows_.begin(), rows_.end(),
                          [&](const Command& other) { return other.path == path; });
  return row == rows_.end() ? nullptr : &*row;
}

std::vector<const Command*> CommandTable::words_behind(const Command& noun) const {
  std::vector<const Command*> found;
  for (const Command& row : rows_) {
    if (!row.path.empty() && row.parent() == noun.path) found.push_back(&row);
  }
  return found;
}

}  // namespace rocefs
