#include "core/config/scenario.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "core/base/assignment.h"
#include "core/base/kstrto.h"
#include "core/base/text.h"
#include "core/base/units.h"

namespace rocefs {
namespace {

constexpr std::array<std::string_view, 8> kSections = {"sim",    "flows",  "load", "at",
                                                       "inject", "sample", "plot", "variant"};
// All lines that ranges stand for. A mistyped range is refused before it fills the memory.
constexpr uint64_t kMaxLines = 10'000'000;
// Stores of a line of [at]: one for each host of a large fabric. They are done together.
constexpr uint64_t kMaxStores = 100'000;

// A range {A..B} in a text.
struct Range {
  size_t begin, end;  // position in the text
  uint64_t first, last;
};

std::optional<Range> next_range(std::string_view text, size_t from) {
  for (size_t open = text.find('{', from); open != text.npos; open = text.find('{', open + 1)) {
    size_t close = text.find('}', open), dots = text.find("..", open);
    if (close == text.npos || dots == text.npos || dots > close) continue;
    Range range{open, close + 1, 0, 0};
    auto number = [](std::string_view digits, uint64_t& value) {
      auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      return code == std::errc() && end == digits.data() + digits.size();
    };
    bool good = number(text.substr(open + 1, dots - open - 1), range.first) &&
                number(text.substr(dots + 2, close - dots - 2), range.last);
    if (good && range.first <= range.last) return range;
  }
  return std::nullopt;
}

// The n-th text of the series that `text` stands for.
std::string instance(std::string_view text, uint64_t n) {
  std::string result;
  size_t at = 0;
  while (std::optional<Range> range = next_range(text, at)) {
    result += text.substr(at, range->begin - at);
    result += std::to_string(range->first + n);
    at = range->end;
  }
  return result + std::string(text.substr(at));
}

Result<void> set_run_key(Scenario& scenario, std::string_view key, std::string_view value) {
  if (key == "title") {
    scenario.title = value;
    return {};
  }
  if (key == "until") return keep(key, parse_duration(value), scenario.until.emplace());
  if (key == "limit") return keep(key, parse_duration(value), scenario.limit);
  if (key == "capture") {
    constexpr std::string_view kWords[] = {"no", "yes"};
    Result<size_t> word = match_word(value, kWords);
    if (!word) return errorf(EINVAL, "capture={}: yes or no is wanted", value);
    scenario.capture = *word == 1;
    return {};
  }
  return errorf(EINVAL, "unknown key {} in [sim]: title, until, limit or capture is wanted", key);
}

Result<void> set_interval(Scenario& scenario, std::string_view value) {
  Result<void> kept = keep("interval", parse_duration(value), scenario.interval);
  if (kept && scenario.interval < 1) return Error{EINVAL, "interval=0 would not advance time"};
  return kept;
}

}  // namespace

Result<std::vector<std::string>> expand_range(std::string_view text, uint64_t most) {
  std::optional<Range> range = next_range(text, 0);
  if ((range ? range->last - range->first : 0) >= most) {
    return errorf(ERANGE, "{} stands for more than {} names", quoted(text), most);
  }
  if (!range) return std::vector{std::string(text)};
  std::vector<std::string> texts;
  for (uint64_t n = 0; n <= range->last - range->first; ++n) texts.push_back(instance(text, n));
  return texts;
}

bool Scenario::has_section(std::string_view kind) {
  return std::find(kSections.begin(), kSections.end(), kind) != kSections.end();
}

Result<void> Scenario::enter(std::string_view kind, const std::string& name, int line) {
  if (kind != "variant" && kind != "load") {
    if (!name.empty()) return errorf(EINVAL, "[{}] takes no name", kind);
    if (kind == "plot") plot_line = line;
    return {};
  }
  if (!valid_entry_name(name)) return errorf(EINVAL, "{} cannot be a name", quoted(name));
  auto& names = kind == "load" ? load_names_ : variant_names_;
  if (!names.insert(name).second) return errorf(EINVAL, "{} exists already", name);
  if (kind == "load") {
    loads.push_back({name, line, {}});
  } else {
    variants.push_back({name, {}, {}});
  }
  return {};
}

Result<void> Scenario::take(std::string_view kind, const Line& line) {
  if (kind == "sim") return set_run_key(*this, line.key, line.value);
  if (kind == "sample" && line.key == "interval") return set_interval(*this, line.value);
  if (kind == "plot") {
    panels.push_back(line);
    return {};
  }
  if (kind == "load") {
    loads.back().keys.push_back(line);
    return {};
  }
  Result<std::vector<Line>> lines = expand(line);
  if (!lines) return lines.error();
  std::vector<Line>& list = kind == "flows" ? flows : kind == "inject" ? faults : samples;
  for (Line& one : *lines) {
    if (kind == "at") {
      Result<Line> store = expand_paths(one);
      if (!store) return store.error();
      stores.push_back(std::move(*store));
      continue;
    }
    constexpr std::string_view kOfLoad = "load/";
    if (kind == "variant" && one.key.starts_with(kOfLoad)) {
      one.key.erase(0, kOfLoad.size());
      variants.back().loads.push_back(std::move(one));
    } else if (kind == "variant") {
      variants.back().knobs.push_back({std::move(one.key), std::move(one.value), one.line});
    } else {
      // Names of samples become columns of series.csv.
      if (kind == "sample" && !valid_entry_name(one.key)) {
        return errorf(EINVAL, "{} cannot be a name", quoted(one.key));
      }
      list.push_back(std::move(one));
    }
  }
  return {};
}

Result<std::vector<Scenario::Line>> Scenario::expand(const Line& line) {
  std::optional<Range> range = next_range(line.key, 0);
  if (!range) return std::vector<Line>{line};
  uint64_t length = range->last - range->first;
  if (length >= kMaxLines - expanded_) {
    return errorf(EINVAL, "{}: all ranges together make more than {} lines", line.key, kMaxLines);
  }
  expanded_ += length + 1;
  for (const std::string* text : {&line.key, &line.value}) {
    for (auto other = next_range(*text, 0); other; other = next_range(*text, other->end)) {
      if (other->last - other->first == length) continue;
      return errorf(EINVAL, "{} is not as long as {}",
                    text->substr(other->begin, other->end - other->begin),
                    line.key.substr(range->begin, range->end - range->begin));
    }
  }
  std::vector<Line> lines;
  for (uint64_t n = 0; n <= length; ++n) {
    lines.push_back({instance(line.key, n), instance(line.value, n), line.line});
  }
  return lines;
}

// Text that is no assignment is refused where it is stored.
Result<Scenario::Line> Scenario::expand_paths(const Line& line) {
  Result<std::vector<Assignment>> given = parse_assignments(line.value);
  if (!given) return line;
  std::vector<Assignment> all;
  for (const Assignment& store : *given) {
    std::optional<Range> range = next_range(store.path, 0);
    if ((range ? range->last - range->first : 0) >= kMaxStores - all.size()) {
      return errorf(ERANGE, "{}: the line has more than {} stores", line.key, kMaxStores);
    }
    Result<std::vector<Line>> each = expand({store.path, store.value, line.line});
    if (!each) return each.error();
    for (Line& one : *each) all.push_back({std::move(one.key), std::move(one.value)});
  }
  if (all.size() == given->size() && all == *given) return line;
  return Line{line.key, format_assignments(all), line.line};
}

}  // namespace rocefs
