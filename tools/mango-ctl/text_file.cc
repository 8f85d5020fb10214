#include "tools/mango-ctl/text_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/base/fd.h"

namespace rocefs {
namespace {

Error file_failure(const std::string& file) {
  int code = errno;
  return errorf(code, "{}: {}", file, std::strerror(code));
}

}  // namespace

Result<std::string> read_text(const std::string& file) {
  Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return file_failure(file);
  std::string text;
  char part[65536];
  for (ssize_t size; (size = ::read(fd.get(), part, sizeof part)) != 0;) {
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return file_failure(file);
    text.append(part, static_cast<size_t>(size));
  }
  return text;
}

Result<Replacement> Replacement::of(const std::string& target, mode_t mode) {
  size_t name = target.rfind('/') + 1;  // 0 without a slash
  std::string path = target.substr(0, name) + "." + target.substr(name) + ".XXXXXX";
  Fd fd(::mkostemp(path.data(), O_CLOEXEC));
  if (!fd) return file_failure(target);
  return Replacement(target, path, mode);
}

Replacement::Replacement(Replacement&& other) noexcept
    : target_(std::move(other.target_)),
      path_(std::exchange(other.path_, {})),
      mode_(other.mode_) {}

Replacement::~Replacement() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

Result<void> Replacement::write(std::string_view text) {
  Fd fd(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!fd) return file_failure(target_);
  while (!text.empty()) {
    ssize_t size = ::write(fd.get(), text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return file_failure(target_);
    text.remove_prefix(static_cast<size_t>(size));
  }
  return {};
}

Result<void> Replacement::commit() {
  if (::chmod(path_.c_str(), mode_) != 0) return file_failure(target_);
  if (::rename(path_.c_str(), target_.c_str()) != 0) return file_failure(target_);
  path_.clear();
  return {};
}

}  // namespace rocefs
