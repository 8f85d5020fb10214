// Words of the command line that are nearly those of commands.
#pragma once

#include <string_view>

namespace rocefs {

// The command that `word` is, or was meant to be: one letter, or two of a longer command, is
// another one, is missing, is too much or stands behind the next one. Empty for paths, names with
// digits, and words that are like no command.
std::string_view command_like(std::string_view word);

}  // namespace rocefs
