#include "tools/mango-ctl/child.h"

#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/fd.h"

namespace rocefs {
namespace {

// Ignores the terminal's signals while a child runs: the child gets them, and its parent cleans up.
class IgnoredSignals {
 public:
  IgnoredSignals() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGINT, &ignore, &interrupt_);
    ::sigaction(SIGQUIT, &ignore, &quit_);
  }
  ~IgnoredSignals() {
    ::sigaction(SIGINT, &interrupt_, nullptr);
    ::sigaction(SIGQUIT, &quit_, nullptr);
  }
  IgnoredSignals(const IgnoredSignals&) = delete;
  IgnoredSignals& operator=(const IgnoredSignals&) = delete;

  // Gives the child the dispositions from before.
  void restore_in(posix_spawnattr_t& attributes) const {
    sigset_t defaults;
    sigemptyset(&defaults);
    if (interrupt_.sa_handler != SIG_IGN) sigaddset(&defaults, SIGINT);
    if (quit_.sa_handler != SIG_IGN) sigaddset(&defaults, SIGQUIT);
    ::posix_spawnattr_setsigdefault(&attributes, &defaults);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  }

 private:
  struct sigaction interrupt_ {};
  struct sigaction quit_ {};
};

// Anonymous file with this text, at its beginning.
Result<Fd> file_of(const std::string& text) {
  Fd fd(::memfd_create("input", MFD_CLOEXEC));
  if (!fd) return errorf(errno, "memfd_create: {}", std::strerror(errno));
  for (size_t at = 0; at < text.size();) {
    ssize_t size = ::write(fd.get(), text.data() + at, text.size() - at);
    if (size < 0) return errorf(errno, "memfd: {}", std::strerror(errno));
    at += static_cast<size_t>(size);
  }
  ::lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

}  // namespace

Result<int> run_program(const std::vector<std::string>& words, const std::string& input,
                        ChildOutput output) {
  Result<Fd> stdin_file = file_of(input);
  if (!stdin_file) return stdin_file.error();
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);

  IgnoredSignals ignored;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_init(&actions);
  ignored.restore_in(attributes);
  ::posix_spawn_file_actions_adddup2(&actions, stdin_file->get(), 0);
  if (output == ChildOutput::kStderr) ::posix_spawn_file_actions_adddup2(&actions, 2, 1);
  pid_t child = -1;
  int code = ::posix_spawnp(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (code != 0) return errorf(code, "{}: {}", words[0], std::strerror(code));

  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return errorf(errno, "{}: {}", words[0], std::strerror(errno));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace rocefs
