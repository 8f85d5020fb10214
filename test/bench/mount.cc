#include "test/bench/mount.h"

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/base/clock.h"
#include "test/bench/bench.h"

namespace rocefs::bench {

// build/bin/rocefs beside build/test/rocefs_bench.
std::string Mount::daemon() {
  if (const char* path = std::getenv("ROCEFS")) return path;
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../bin/rocefs";
}

pid_t Mount::worker() const {
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", pid_));
  pid_t worker = -1;
  children >> worker;
  return worker;
}

Mount::Mount(std::optional<int> cpu, const std::string& option) {
  char name[] = "/tmp/rocefs-bench.XXXXXX";
  directory_ = ::mkdtemp(name);
  std::string program = daemon();
  pid_ = ::fork();
  if (pid_ == 0) {
    if (cpu) pin(*cpu);
    if (option.empty())
      ::execl(program.c_str(), program.c_str(), "-f", directory_.c_str(), nullptr);
    ::execl(program.c_str(), program.c_str(), "-f", "-o", option.c_str(), directory_.c_str(),
            nullptr);
    ::_exit(127);
  }
  TimeNs end = monotonic_ns() + 10 * kSecond;
  std::string seed = at("kernel/debug/rocefs/seed");
  while (!(up_ = ::access(seed.c_str(), F_OK) == 0) && monotonic_ns() < end) {
    if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      break;
    }
    ::sched_yield();
  }
  if (!up_) fmt::print(stderr, "skipped: {} could not be mounted on {}\n", program, directory_);
}

Mount::~Mount() {
  if (up_) ::umount2(directory_.c_str(), MNT_DETACH);
  if (pid_ > 0) {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  ::rmdir(directory_.c_str());
}

}  // namespace rocefs::bench
