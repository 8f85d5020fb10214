// Files of results in the output directory.
#pragma once

#include <string>

#include "core/base/result.h"

namespace rocefs {

// The reason of a failure names the file.
Result<void> write_file(const std::string& path, const std::string& text);

// Files of a run's packets and of its recording.
std::string packets_name(const std::string& variant);
std::string view_name(const std::string& variant);

// Runs gnuplot on plot.gp in the directory. A failure is told on stderr, but is no failure of the
// run.
void run_gnuplot(const std::string& directory);

// Makes the directory if it is not there; its path without symbolic links. ENOTDIR, EACCES or EROFS
// if files cannot be made in it. The reason of a failure names it.
Result<std::string> make_directory(const std::string& path);

}  // namespace rocefs
