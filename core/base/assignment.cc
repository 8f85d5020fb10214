#include "core/base/assignment.h"

#include <cerrno>

#include "core/base/kstrto.h"
#include "core/base/units.h"

namespace rocefs {
namespace {

constexpr std::string_view kBlanks = " \t";

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Result<std::vector<Assignment>> read() {
    std::vector<Assignment> all;
    bool line_is_empty = true;
    for (;;) {
      skip_blanks();
      if (text_.empty() || text_[0] == '\n') {
        if (line_is_empty) return Error{EINVAL, "an empty line: PATH=VALUE is wanted"};
        if (!text_.empty()) text_.remove_prefix(1);
        if (text_.empty()) return all;
        line_is_empty = true;
        continue;
      }
      Result<Assignment> one = read_one();
      if (!one) return one.error();
      all.push_back(std::move(*one));
      line_is_empty = false;
    }
  }

 private:
  void skip_blanks() {
    text_.remove_prefix(std::min(text_.find_first_not_of(kBlanks), text_.size()));
  }
  std::string_view take(size_t size) {
    std::string_view taken = text_.substr(0, size);
    text_.remove_prefix(taken.size());
    return taken;
  }

  Result<Assignment> read_one() {
    size_t end = std::min(text_.find_first_of("= \t\n"), text_.size());
    Assignment one;
    one.path = take(end);
    if (one.path.empty() || text_.empty() || text_[0] != '=') {
      return errorf(EINVAL, "'{}': PATH=VALUE is wanted", one.path);
    }
    text_.remove_prefix(1);
    if (text_.starts_with('\'')) {
      Result<std::string> value = read_quoted(one.path);
      if (!value) return value.error();
      one.value = std::move(*value);
    } else {
      one.value = take(std::min(text_.find_first_of(" \t\n"), text_.size()));
    }
    return one;
  }

  Result<std::string> read_quoted(const std::string& path) {
    std::string value;
    for (size_t i = 1; i < text_.size(); ++i) {
      char c = text_[i];
      if (c == '\'') {
        text_.remove_prefix(i + 1);
        if (text_.empty() || text_.find_first_of(" \t\n") == 0) return value;
        return errorf(EINVAL, "{}: a blank is wanted after the closing quote", path);
      }
      if (c == '\\') {
        char escaped = ++i < text_.size() ? text_[i] : '\0';
        if (escaped != '\'' && escaped != '\\' && escaped != 'n') {
          return errorf(EINVAL, "{}: ', \\ or n is wanted after a backslash", path);
        }
        c = escaped == 'n' ? '\n' : escaped;
      }
      value += c;
    }
    return errorf(EINVAL, "{}: unterminated quote", path);
  }

  std::string_view text_;
};

}  // namespace

Result<std::vector<Assignment>> parse_assignments(std::string_view text) {
  return Reader(text).read();
}

std::string format_assignment(std::string_view path, std::string_view value) {
  std::string text = fmt::format("{}=", path);
  if (!value.starts_with('\'') && value.find_first_of(" \t\n") == value.npos) {
    return text += value;
  }
  text += '\'';
  for (char c : value) {
    if (c == '\'' || c == '\\') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text += '\'';
}

std::string format_assignments(const std::vector<Assignment>& assignments) {
  std::string text;
  for (const Assignment& one : assignments) {
    if (!text.empty()) text += ' ';
    text += format_assignment(one.path, one.value);
  }
  return text;
}

Result<When> parse_when(std::string_view text) {
  When when;
  when.absolute = text.starts_with('@');
  if (when.absolute) {
    text.remove_prefix(1);
    if (size_t plus = text.find('+'); plus != text.npos) {
      Result<uint64_t> events = kstrtou64(text.substr(plus + 1), 10);
      if (!events) return events.error();
      when.moment.events = *events;
      text = text.substr(0, plus);
    }
  }
  Result<TimeNs> time = parse_duration(text);
  if (!time) return time.error();
  when.moment.at = *time;
  return when;
}

std::string format_moment(const Moment& moment) {
  if (moment.events == 0) return fmt::format("@{}", moment.at);
  return fmt::format("@{}+{}", moment.at, moment.events);
}

}  // namespace rocefs
