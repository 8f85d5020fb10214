// `rocefs attach` and `rocefs detach`: a host's interfaces in a network namespace that is there
// already, for example a container's.
#pragma once

namespace rocefs {

// argv[0] is "attach" or "detach". Return exit statuses: 0, 2 for a wrong command line, else 125.
int attach(int argc, char** argv);
int detach(int argc, char** argv);

extern const char* const kAttachUsage;
extern const char* const kDetachUsage;

}  // namespace rocefs
