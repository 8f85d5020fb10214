// Stale files: what an earlier run has left in a directory of results and a later one does not
// write again, and which would pass for the later one's.
#pragma once

#include <string>
#include <vector>

namespace rocefs {

// Names of the files that the run which summary.json there tells of may have written; empty without
// one, and for a sweep. Call before summary.json is written again.
std::vector<std::string> files_of_run(const std::string& directory);

// Removes those of `files` that are not in `written`.
void remove_stale(const std::string& directory, const std::vector<std::string>& files,
                  const std::vector<std::string>& written);

}  // namespace rocefs
