// Looks at paths that may be in a file system whose server does not answer: whoever asks it waits
// in the kernel, where perhaps no signal ends it.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <string>
#include <vector>

namespace rocefs {

struct Look {
  int code = 0;  // errno of the look; ETIMEDOUT when nobody answered
  mode_t mode = 0;
  dev_t device = 0;
};
// Whether that is the errno of who could not look, for want of a process or of a descriptor.
bool could_not_look(int code);

// At all of them at once, each in a process of its own, which is left to itself when it gets no
// answer; by a program with one thread. Asks the servers anew: the kernel may remember for an hour.
// Waits five seconds for the first that is there, and no more than two when there is one.
std::vector<Look> bounded_look(const std::vector<std::string>& paths);
Look bounded_look(const std::string& path);

}  // namespace rocefs
