// COMMANDS of mango-ctl(1).
#pragma once

#include <string>

#include "tools/mango-ctl/commands.h"

namespace rocefs {

// Text in roff: a subsection for each noun, with its commands, and for each command without a noun.
std::string manual_of(const CommandTable& table);

}  // namespace rocefs
