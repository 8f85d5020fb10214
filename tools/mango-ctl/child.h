// Child programs.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace rocefs {

// Where a child's output goes: to stderr, as what it says is not what the command prints.
enum class ChildOutput { kStderr, kStdout };

// Runs a program of $PATH with `input` on stdin; waits for it as system(3) does. Returns the exit
// status, 128 and more after a signal; ENOENT if there is no such program.
Result<int> run_program(const std::vector<std::string>& words, const std::string& input = "",
                        ChildOutput output = ChildOutput::kStderr);

}  // namespace rocefs
