// Help text of a row.
#pragma once

#include <string>

#include "tools/mango-ctl/commands.h"

namespace rocefs {

// Usage line of a row without "mango-ctl", with marks: "`rdma pcc start` {<DEVICE> | `all`} …".
std::string usage_of(const Command& command);
// Name of an argument and word for its value, with marks: "`-n`, `--count` <N>".
std::string label_of(const Argument& argument);

std::string help_of(const CommandTable& table, const Command& command);

}  // namespace rocefs
