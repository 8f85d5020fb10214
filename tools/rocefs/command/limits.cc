#include "tools/rocefs/command/limits.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

namespace rocefs {
namespace {

// A device has its page of signals, and while something sets its windows a page of those.
constexpr rlim_t kFiles = 36, kFilesPerDevice = 2;
constexpr rlim_t kMemory = 256 << 20, kMemoryPerDevice = 8 << 20;

Result<void> check(__rlimit_resource which, rlim_t wanted, const char* what, const char* option) {
  rlimit limit{};
  if (::getrlimit(which, &limit) != 0 || limit.rlim_cur >= wanted) return {};
  return errorf(EMFILE, "the limit of {} is {} (ulimit {}): at least {} needed", what,
                limit.rlim_cur, option, wanted);
}

[[noreturn]] void end(const char* why) {
  constexpr char kName[] = "rocefs: ";
  (void)!::write(STDERR_FILENO, kName, sizeof kName - 1);
  (void)!::write(STDERR_FILENO, why, std::strlen(why));
  (void)!::write(STDERR_FILENO, "\n", 1);
  ::_exit(1);
}

[[noreturn]] void report_exception() {
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::bad_alloc&) {
    end("out of memory (of the machine, or of ulimit -v)");
  } catch (const std::system_error& failed) {
    if (failed.code().value() == EAGAIN) end("cannot start a thread (ulimit -u, ulimit -v)");
  } catch (...) {
  }
  std::abort();
}

}  // namespace

Result<void> check_open_files(size_t devices, const char* option) {
  return check(RLIMIT_NOFILE, kFiles + kFilesPerDevice * devices, "open files", option);
}

Result<void> check_limits(size_t memory, size_t devices) {
  if (auto files = check_open_files(devices, "-Hn"); !files) return files;
  auto size = check(RLIMIT_FSIZE, memory, "a file's size", "-f");
  if (!size) return size;
  return check(RLIMIT_AS, kMemory + kMemoryPerDevice * devices, "memory", "-v");
}

void report_exhausted_limits() {
  ::signal(SIGXFSZ, SIG_IGN);
  std::set_terminate(report_exception);
}

}  // namespace rocefs
