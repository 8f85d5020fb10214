// Programs that stand beside rocefs and have a command of its: `rocefs top` is rocefs-top.
#pragma once

namespace rocefs {

// Replaces the process by the program beside this one's executable. argv[0] is the command; the
// rest is the program's. The mount is the program's to choose. Returns an exit status, 127 or 126
// as of env(1), after a line on stderr if that fails.
int run_beside(const char* program, int argc, char** argv);

}  // namespace rocefs
