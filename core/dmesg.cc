#include "core/dmesg.h"

#include <fmt/format.h>

#include <algorithm>

namespace rocefs {

void Dmesg::log(TimeNs at, std::string_view line) {
  std::string text =
      fmt::format("[{:5}.{:06}] {}", at / kSecond, at % kSecond / kMicrosecond, line);
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  text += '\n';
  bytes_ += text.size();
  lines_.push_back(std::move(text));
  while (bytes_ > max_bytes_ && lines_.size() > 1) {
    bytes_ -= lines_.front().size();
    lines_.pop_front();
  }
}

std::string Dmesg::text() const {
  std::string text;
  text.reserve(bytes_);
  for (const std::string& line : lines_) text += line;
  return text;
}

}  // namespace rocefs
