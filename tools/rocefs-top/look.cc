#include "tools/rocefs-top/look.h"

#include <string.h>

#include <algorithm>
#include <charconv>

#include "core/base/text.h"
#include "core/base/units.h"

namespace rocefs::top {
namespace {

std::optional<double> whole_number(std::string_view text) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end) return std::nullopt;
  return static_cast<double>(value);
}

}  // namespace

std::optional<double> Record::number(size_t file) const {
  return file < texts.size() ? whole_number(texts[file]) : std::nullopt;
}

std::optional<double> Record::rate(size_t file) const {
  Result<uint64_t> value = parse_rate(file < texts.size() ? texts[file] : "");
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

const Record* Look::find(Screen screen, std::string_view key) const {
  const std::vector<Record>& all = of(screen);
  const std::string wanted(key);
  auto found = std::lower_bound(all.begin(), all.end(), wanted,
                                [](const Record& one, const std::string& other) {
                                  return ::strverscmp(one.key.c_str(), other.c_str()) < 0;
                                });
  return found != all.end() && found->key == wanted ? &*found : nullptr;
}

std::optional<double> result_value(std::string_view result, std::string_view key) {
  for (std::string_view line : split(result, "\n")) {
    const size_t blank = line.find(' ');
    if (blank != line.npos && line.substr(0, blank) == key) {
      return whole_number(line.substr(blank + 1));
    }
  }
  return std::nullopt;
}

double seconds_between(const Look& before, const Look& now) {
  if (!before.now_ns || !now.now_ns || *now.now_ns <= *before.now_ns) return 0;
  return static_cast<double>(*now.now_ns - *before.now_ns) / 1e9;
}

}  // namespace rocefs::top
