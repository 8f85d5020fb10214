#include "core/process/process_status.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "core/base/fd.h"
#include "core/base/text.h"

namespace rocefs {

std::string text_at(int directory, const char* name) {
  std::string text;
  Fd fd(::openat(directory, name, O_RDONLY | O_CLOEXEC));
  if (!fd) return text;
  char buffer[4096];
  for (ssize_t got; (got = ::read(fd.get(), buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

std::string_view field_of(std::string_view status, std::string_view name) {
  for (std::string_view line : split(status, "\n")) {
    if (line.starts_with(name)) return line.substr(name.size());
  }
  return {};
}

std::vector<gid_t> numbers_of(std::string_view field) {
  std::vector<gid_t> numbers;
  for (std::string_view word : split(field, " \t")) {
    numbers.push_back(static_cast<gid_t>(std::strtoul(std::string(word).c_str(), nullptr, 10)));
  }
  return numbers;
}

bool acts_as(std::string_view status, uid_t user, gid_t group) {
  constexpr size_t kForFiles = 3;  // after the real, the effective and the saved one
  std::vector<gid_t> users = numbers_of(field_of(status, "Uid:"));
  std::vector<gid_t> groups = numbers_of(field_of(status, "Gid:"));
  return users.size() > kForFiles && groups.size() > kForFiles && users[kForFiles] == user &&
         groups[kForFiles] == group;
}

bool is_traced(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/status";
  const std::string status = text_at(AT_FDCWD, path.c_str());
  const std::string_view tracer = field_of(status, "TracerPid:");
  return !tracer.empty() && tracer.find_first_not_of(" \t0\n") != tracer.npos;
}

}  // namespace rocefs
