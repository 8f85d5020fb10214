// rocefs: mounts an emulated RoCE NIC, or runs a command with one.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "tools/rocefs/daemon.h"
#include "tools/rocefs/enter.h"
#include "tools/rocefs/options.h"

namespace {

using namespace rocefs;

constexpr int kUsageError = 2;

// The child goes on in the background; the parent waits for its word, so that every error is seen
// and the mount is there when the command returns. Returns the child's end of the pipe.
int fork_to_background() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return -1;
  pid_t child = ::fork();
  if (child < 0) return -1;
  if (child == 0) {
    ::close(ends[0]);
    ::setsid();
    return ends[1];
  }
  ::close(ends[1]);
  char word;
  if (::read(ends[0], &word, 1) == 1) ::_exit(0);
  int status = 0;
  ::waitpid(child, &status, 0);
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

void settle_in_background(int word) {
  int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd : {0, 1, 2}) ::dup2(null, fd);
  ::close(null);
  (void)!::write(word, "k", 1);
  ::close(word);
}

void block_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

int serve(const Options& options) {
  int word = -1;
  if (!options.foreground) {
    word = fork_to_background();
    if (word < 0) {
      std::perror("rocefs: fork");
      return 1;
    }
  }
  block_signals();
  auto created = Daemon::create(options);
  if (auto* failed = std::get_if<Failure>(&created)) {
    std::fprintf(stderr, "rocefs: %s\n", failed->reason.c_str());
    return failed->exit_code;
  }
  auto& daemon = std::get<0>(created);
  std::printf("rocefs: %s\n", daemon->summary().c_str());
  std::fflush(stdout);
  (void)!::chdir("/");
  if (word >= 0) settle_in_background(word);
  daemon->run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "enter") return enter(argc - 1, argv + 1);
  Result<Options> options = parse_options(argc, argv);
  if (!options) {
    std::fprintf(stderr, "rocefs: %s\nTry 'rocefs --help'.\n", options.error().reason.c_str());
    return kUsageError;
  }
  if (options->help) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (options->version) {
    std::puts("rocefs 0.1.0");
    return 0;
  }
  return serve(*options);
}
