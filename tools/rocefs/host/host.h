// `rocefs host`: runs a command on one of the machines around the NICs of a mount.
#pragma once

namespace rocefs {

// Replaces the process by the command, so that exit status, signals and terminal are the command's
// own. argv[0] is "host". Exit statuses without a command are those of `rocefs enter`.
int host(int argc, char** argv);

extern const char* const kHostUsage;

}  // namespace rocefs
