// Checks paths that may be in a file system whose server does not answer: a caller would wait in
// the kernel, perhaps beyond any signal.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <string>
#include <vector>

namespace rocefs {

struct Look {
  int code = 0;  // errno of the check; ETIMEDOUT without an answer
  mode_t mode = 0;
  dev_t device = 0;
};
// Returns whether `code` means that the check itself failed, for want of a process or a descriptor.
bool could_not_look(int code);

// Checks all paths at once, each in a separate process, which is abandoned if it gets no answer.
// For programs with one thread. Queries the servers anew, because the kernel may cache for an hour.
// Waits five seconds for the first path found, and at most two once one is found.
std::vector<Look> bounded_look(const std::vector<std::string>& paths);
Look bounded_look(const std::string& path);

}  // namespace rocefs
