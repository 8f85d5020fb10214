#include "tools/rocefs/sim/output_files.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace rocefs {
namespace {

// NAME.EXTENSION, or NAME-VARIANT.EXTENSION.
std::string file_name(std::string_view name, const std::string& variant,
                      std::string_view extension) {
  return fmt::format("{}{}{}.{}", name, variant.empty() ? "" : "-", variant, extension);
}

}  // namespace

std::string packets_name(const std::string& variant) {
  return file_name("packets", variant, "pcapng");
}

std::string view_name(const std::string& variant) {
  return file_name("view", variant, "jsonl");
}

// An earlier file stays whole until the new one is: a disk may be full. What is no regular file,
// such as a link, is written where it leads.
Result<void> write_file(const std::string& path, const std::string& text) {
  struct stat status;
  const bool in_place = ::lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
  const std::string next = in_place ? path : path + ".new";
  std::ofstream file(next, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  const bool written = file && (in_place || std::rename(next.c_str(), path.c_str()) == 0);
  if (written) return {};
  const int code = errno ? errno : EIO;
  if (!in_place) ::unlink(next.c_str());
  return errorf(code, "{}: {}", path, std::strerror(code));
}

void run_gnuplot(const std::string& directory) {
  char name[] = "gnuplot", script[] = "plot.gp";
  char* const arguments[] = {name, script, nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  pid_t child = 0;
  int code = ::posix_spawnp(&child, name, &actions, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (code == 0 && ::waitpid(child, &status, 0) != child) status = -1;
  if (code != 0) {
    std::fprintf(stderr, "rocefs: no plot.svg: gnuplot: %s (Debian has it in gnuplot-nox)\n",
                 std::strerror(code));
  } else if (status != 0) {
    std::fprintf(stderr, "rocefs: no plot.svg: gnuplot failed on %s/plot.gp\n", directory.c_str());
  }
}

Result<std::string> make_directory(const std::string& path) {
  bool made = ::mkdir(path.c_str(), 0777) == 0 || errno == EEXIST;
  char* real = made ? ::realpath(path.c_str(), nullptr) : nullptr;
  if (!real) return errorf(errno, "{}: {}", path, std::strerror(errno));
  std::string text = real;
  std::free(real);
  struct stat status;
  if (::stat(text.c_str(), &status) == 0 && !S_ISDIR(status.st_mode))
    errno = ENOTDIR;
  else if (::faccessat(AT_FDCWD, text.c_str(), W_OK | X_OK, AT_EACCESS) == 0)
    return text;
  return errorf(errno, "{}: {}", path, std::strerror(errno));
}

}  // namespace rocefs
