#include "tools/watch/getter.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/text.h"

namespace rocefs {

std::string unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      plain += text[i];
      continue;
    }
    plain += text[++i] == 'n' ? '\n' : text[i];
  }
  return plain;
}

std::optional<std::vector<std::string_view>> stars_of(std::string_view pattern,
                                                      std::string_view path) {
  const std::vector<std::string_view> wanted = split(pattern, "/"), found = split(path, "/");
  if (wanted.size() != found.size()) return std::nullopt;
  std::vector<std::string_view> stars;
  for (size_t i = 0; i < found.size(); ++i) {
    if (wanted[i] == "*") {
      stars.push_back(found[i]);
    } else if (wanted[i] != found[i]) {
      return std::nullopt;
    }
  }
  return stars;
}

Result<void> Getter::read_all(std::string& text) {
  text.clear();
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

void Getter::Look::split() {
  lines.clear();
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    const size_t sign = std::min(line.find('='), line.size());
    lines.push_back({line.substr(0, sign), line.substr(std::min(sign + 1, line.size()))});
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

Result<void> Getter::look() {
  const Look& earlier = looks_[last_];
  Look& now = looks_[1 - last_];
  if (files_.ended()) {
    file_.reset();
    return Error{ENODEV, "the mount has ended"};
  }
  if (Result<void> read = read_all(now.text); !read) {
    file_.reset();
    return read.error();
  }
  now.split();
  other_files_ =
      !std::equal(now.lines.begin(), now.lines.end(), earlier.lines.begin(), earlier.lines.end(),
                  [](const Line& a, const Line& b) { return a.path == b.path; });
  changed_.clear();
  for (uint32_t i = 0; i < now.lines.size(); ++i) {
    if (other_files_ || now.lines[i].text != earlier.lines[i].text) changed_.push_back(i);
  }
  last_ = 1 - last_;
  return {};
}

}  // namespace rocefs
