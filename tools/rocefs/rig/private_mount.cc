#include "tools/rocefs/rig/private_mount.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/process/close_all_but.h"

namespace rocefs {
namespace {

// Mount option, in which a comma ends the path unless a backslash stands before it.
std::string config_option(const std::string& path) {
  std::string option = "config=";
  for (char letter : path) {
    if (letter == ',' || letter == '\\') option += '\\';
    option += letter;
  }
  return option;
}

// Leaves the caller's files to the caller, but for a configuration that is one of them.
void close_at_exec(const std::string& config) {
  ::close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC);
  for (const char* place : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!config.starts_with(place)) continue;
    ::fcntl(std::atoi(config.c_str() + std::strlen(place)), F_SETFD, 0);
  }
}

void wait_for(pid_t child) {
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

Result<PrivateMount> PrivateMount::make(const std::vector<std::string>& options,
                                        const std::string& config) {
  const char* named = std::getenv("TMPDIR");
  const std::string base = named && *named ? named : "/tmp";
  // Absolute: the command may have another working directory.
  std::unique_ptr<char, decltype(&std::free)> place(::realpath(base.c_str(), nullptr), std::free);
  if (!place) return errorf(errno, "{}: {}", base, std::strerror(errno));
  PrivateMount mount;
  mount.directory_ = std::string(place.get()) + "/rocefs-XXXXXX";
  if (!::mkdtemp(mount.directory_.data())) {
    return errorf(errno, "{}: {}", mount.directory_, std::strerror(errno));
  }
  if (Result<void> started = mount.start(options, config); !started) {
    mount.dismiss_watcher();
    ::rmdir(mount.directory_.c_str());
    return started.error();
  }
  return mount;
}

// Neither the terminal's signals nor its own end reach the server: it outlives this process where
// the mount stays.
void PrivateMount::serve(const std::vector<std::string>& options, const std::string& config,
                         int output) const {
  ::setsid();
  Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::dup2(null.get(), STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  close_at_exec(config);
  std::vector<std::string> words{"rocefs", "-f"};
  for (const std::string& option : options) words.insert(words.end(), {"-o", option});
  if (!config.empty()) words.insert(words.end(), {"-o", config_option(config)});
  words.push_back(directory_);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv("/proc/self/exe", arguments.data());
  std::fprintf(stderr, "rocefs: %s\n", std::strerror(errno));
  ::_exit(1);
}

Result<void> PrivateMount::start(const std::vector<std::string>& options,
                                 const std::string& config) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error{errno, std::strerror(errno)};
  Fd output(ends[0]), input(ends[1]);
  server_ = ::fork();
  if (server_ < 0) return Error{errno, std::strerror(errno)};
  if (server_ == 0) serve(options, config, input.get());
  input.reset();
  start_watcher();
  // The first line on success is the mount's; on failure it prints why, and ends.
  std::string said;
  const std::string success = fmt::format("rocefs: {}:", directory_);
  char part[4096];
  for (ssize_t size; (size = ::read(output.get(), part, sizeof part)) != 0;) {
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) break;
    said.append(part, static_cast<size_t>(size));
    if (said.find(success) != std::string::npos) return {};
  }
  wait_for(server_);
  while (said.ends_with('\n')) said.pop_back();
  if (said.starts_with("rocefs: ")) said.erase(0, std::strlen("rocefs: "));
  return Error{EIO, said.empty() ? "the mount ended at once" : said};
}

void PrivateMount::start_watcher() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  Fd near(ends[1]), far(ends[0]);
  watcher_ = ::fork();
  if (watcher_ == 0) watch(std::move(far));
  lifeline_ = std::move(near);
}

void PrivateMount::watch(Fd lifeline) const {
  Fd server(static_cast<int>(::syscall(SYS_pidfd_open, server_, 0)));
  close_all_but(lifeline.get(), server ? server.get() : lifeline.get());
  ::setsid();
  char word;
  if (::read(lifeline.get(), &word, 1) != 0) ::_exit(0);
  // The one who would have ended the mount was killed.
  if (!server) ::kill(server_, SIGTERM);
  if (server && ::syscall(SYS_pidfd_send_signal, server.get(), SIGTERM, nullptr, 0) == 0) {
    pollfd ended{server.get(), POLLIN, 0};
    (void)::poll(&ended, 1, -1);
  }
  ::rmdir(directory_.c_str());
  ::_exit(0);
}

void PrivateMount::dismiss_watcher() {
  if (watcher_ < 0) return;
  (void)!::write(lifeline_.get(), "k", 1);
  wait_for(watcher_);
  watcher_ = -1;
}

bool PrivateMount::ended() {
  if (server_ > 0 && ::waitpid(server_, nullptr, WNOHANG) != 0) server_ = -1;
  return server_ < 0;
}

void PrivateMount::end() {
  if (server_ > 0) {
    ::kill(server_, SIGTERM);
    wait_for(server_);
  }
  dismiss_watcher();
  ::rmdir(directory_.c_str());
}

}  // namespace rocefs
