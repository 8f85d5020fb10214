// `rocefs run`: mounts, runs a command, and unmounts.
#pragma once

namespace rocefs {

extern const char* const kRunUsage;

// Arguments from "run" on. Returns the exit status.
int run_with_mount(int argc, char** argv);

}  // namespace rocefs
