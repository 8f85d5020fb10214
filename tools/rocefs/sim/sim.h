// `rocefs sim`: runs the scenario of an ini file in virtual time, without a mount.
#pragma once

namespace rocefs {

// `argv` begins with the subcommand's name. Returns the exit status: 0, 1 if a flow failed or a
// fault did not fire, 2 for a wrong command line or file.
int simulate(int argc, char** argv);

}  // namespace rocefs
