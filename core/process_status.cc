#include "core/process_status.h"

#include <fcntl.h>
#include <unistd.h>

#include "core/fd.h"
#include "core/text.h"

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

}  // namespace rocefs
