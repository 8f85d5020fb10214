// `rocefs wait`: waits until files of a mount have values, for scripts without loops.
#pragma once

namespace rocefs {

extern const char* const kWaitUsage;

// Arguments from "wait" on. Returns the exit status.
int wait_for_files(int argc, char** argv);

}  // namespace rocefs
