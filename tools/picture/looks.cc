#include "tools/picture/looks.h"

#include <algorithm>

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

void Looks::Look::split() {
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

std::string& Looks::begin() {
  std::string& text = looks_[1 - last_].text;
  text.clear();
  return text;
}

void Looks::take() {
  const Look& earlier = looks_[last_];
  Look& now = looks_[1 - last_];
  now.split();
  other_files_ =
      !std::equal(now.lines.begin(), now.lines.end(), earlier.lines.begin(), earlier.lines.end(),
                  [](const Line& a, const Line& b) { return a.path == b.path; });
  changed_.clear();
  for (uint32_t i = 0; i < now.lines.size(); ++i) {
    if (other_files_ || now.lines[i].text != earlier.lines[i].text) changed_.push_back(i);
  }
  last_ = 1 - last_;
}

}  // namespace rocefs
