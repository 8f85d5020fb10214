// `rocefs enter`: runs a command that sees the mounted NICs in /sys.
#pragma once

namespace rocefs {

// Replaces the process by the command, so that exit status, signals and terminal are the command's
// own. argv[0] is "enter". Returns an exit status if there is no command to run: 0 for --help, 2
// for a wrong command line, 126 for a command that cannot be run, 127 for one that is not found,
// and 125 for all else, as env(1) and chroot(1) do. A failure is one line on stderr.
int enter(int argc, char** argv);

extern const char* const kEnterUsage;

}  // namespace rocefs
