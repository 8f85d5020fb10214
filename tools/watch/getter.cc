#include "tools/watch/getter.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace rocefs {

Result<void> Getter::read_all(std::string& text) {
  if (!file_) {
    Result<Fd> file = files_.open_file(std::string(kDebugFiles) + "get", O_RDWR);
    if (!file) return file.error();
    const std::string query = fmt::format("{}", fmt::join(patterns_, " "));
    if (::write(file->get(), query.data(), query.size()) < 0) {
      const int code = errno;
      return errorf(code, "get: {}", ::strerror(code));
    }
    file_ = std::move(*file);
  }
  constexpr size_t kPart = 256 << 10;
  for (;;) {
    const size_t at = text.size();
    text.resize(at + kPart);
    const ssize_t size = ::read(file_.get(), text.data() + at, kPart);
    const int code = errno;
    text.resize(at + static_cast<size_t>(std::max<ssize_t>(size, 0)));
    if (size == 0) return {};
    if (size < 0 && code != EINTR) return errorf(code, "get: {}", ::strerror(code));
  }
}

Result<void> Getter::look() {
  if (files_.ended()) {
    file_.reset();
    return Error{ENODEV, "the mount has ended"};
  }
  if (Result<void> read = read_all(begin()); !read) {
    file_.reset();
    return read.error();
  }
  take();
  return {};
}

}  // namespace rocefs
