// rocefs sim: runs the scenario of an ini file in virtual time, without a mount.
#pragma once

namespace rocefs {

// `argv` begins with the subcommand's name. 0, 1 when a flow failed or a fault did not fire, 2 for
// a command line or a file that cannot be.
int simulate(int argc, char** argv);

}  // namespace rocefs
