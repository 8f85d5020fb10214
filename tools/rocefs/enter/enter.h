// `rocefs enter`: runs a command for which /sys is that of a machine with our NICs.
#pragma once

namespace rocefs {

// argv[0] is "enter". Replaces the process by the command, so that its exit status, signals and
// terminal are the command's own. Returns only what to exit with when that did not come to be: 0
// for
// --help, 2 for a mistake on the command line, 126 or 127 for a command that cannot be run or found
// and 125 for everything else, as env(1) and chroot(1) do; it has been said on stderr in one line.
int enter(int argc, char** argv);

extern const char* const kEnterUsage;

}  // namespace rocefs
