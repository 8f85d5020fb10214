// Trial: a plugin is loaded in a process of its own before the card loads it. One that crashes,
// hangs or ends the process there is refused, and what the card runs goes on.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "pcc/run/library_copy.h"

namespace rocefs {

// Word on the command line of a process that tries a plugin.
inline constexpr const char* kTrialWord = "--try";

// Loads each of the libraries, eight at a time, each in a process of its own, which has
// Watchdog::kMaxLoad to do it. Returns for each the reason to refuse it, empty for one that loads;
// after 15 s the rest are not tried. The processes are gone by then, but for children of theirs
// that have left their group. One thread at a time.
std::vector<std::string> try_plugins(std::span<const LibraryCopy> libraries);

// Main program of such a process: loads the file, unloads it, and tells the parent.
[[noreturn]] void try_plugin(const char* file);

}  // namespace rocefs
