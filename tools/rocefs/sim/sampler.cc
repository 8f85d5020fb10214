#include "tools/rocefs/sim/sampler.h"

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "core/base/kstrto.h"
#include "core/base/text.h"
#include "core/tree/knob_file.h"
#include "tools/rocefs/instance/instance.h"
#include "tools/rocefs/sim/words.h"

namespace rocefs {
namespace {

// The first number of a text, or the one after `key` in a line.
std::optional<double> number_of(const std::string& text, const std::string& key) {
  size_t at = 0;
  if (!key.empty()) {
    at = text.starts_with(key + " ") ? 0 : text.find("\n" + key + " ");
    if (at == text.npos) return std::nullopt;
    at += key.size() + (at > 0 ? 2 : 1);
  }
  char* end = nullptr;
  double value = std::strtod(text.c_str() + at, &end);
  if (end == text.c_str() + at) return std::nullopt;
  return value;
}

// A knob's value in its base unit: 10G of a rate is 1e10.
std::optional<double> number_of_knob(const KnobRow& row, std::string_view text) {
  Result<KnobValue> value = parse_knob(row, text);
  if (!value) return std::nullopt;
  if (const double* number = std::get_if<double>(&*value)) return *number;
  const uint64_t* whole = std::get_if<uint64_t>(&*value);
  return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
}

}  // namespace

bool Sampler::may_come_later(std::string_view path) {
  for (std::string_view directory : {"traffic", "inject", "loads"}) {
    const std::string begin = fmt::format("{}/{}/", kDebugDirectory, directory);
    if (path.starts_with(begin) && path.find('/', begin.size()) != path.npos) return true;
  }
  return path.find("/pcc/qps/") != path.npos || path.find("/pcc/params/") != path.npos;
}

Result<void> Sampler::add(Tree& tree, const Scenario::Line& line, const Read& read) {
  std::vector<std::string_view> words = split(line.value, " \t");
  Column column;
  if (auto key = take_word(words, "key")) column.key = *key;
  for (auto [key, value] : {std::pair("scale", &column.scale), std::pair("below", &column.below)}) {
    std::optional<std::string> word = take_word(words, key);
    if (!word) continue;
    char* end = nullptr;
    *value = std::strtod(word->c_str(), &end);
    if (word->empty() || *end) return errorf(EINVAL, "{}={}: a number is wanted", key, *word);
  }
  if (words.size() == 2 && words[1] == "rate") {
    column.rate = true;
    words.pop_back();
  }
  if (words.size() != 1) {
    return Error{EINVAL, "PATH [key=KEY] [rate] [scale=NUMBER] [below=NUMBER] is wanted"};
  }
  column.path = words[0];
  Tree::Node* node = tree.follow(column.path);
  bool readable = node && node->file && node->file->readable();
  if (!readable && !may_come_later(column.path)) return errorf(EINVAL, "no file {}", column.path);
  if (auto knob = node ? std::dynamic_pointer_cast<KnobFile>(node->file) : nullptr) {
    column.knob = knob->row().type == KnobType::kText ? nullptr : &knob->row();
  }
  if (Result<void> checked = check(column, read); !checked) return checked;
  columns_.push_back(std::move(column));
  return {};
}

// A file without text may have some later.
Result<void> Sampler::check(const Column& column, const Read& read) {
  if (column.knob && column.knob->type == KnobType::kWord) {
    return errorf(EINVAL, "{} has words ({}), not a number", column.path, column.knob->words);
  }
  if (column.knob && !column.key.empty()) {
    return errorf(EINVAL, "key={}: {} has one value", column.key, column.path);
  }
  std::optional<std::string> text = column.knob ? std::nullopt : read(column.path);
  if (!text || without_newline(*text).empty() || number_of(*text, column.key)) return {};
  if (column.key.empty()) {
    return errorf(EINVAL, "{} does not begin with a number: {}", column.path,
                  quoted(std::string_view(*text).substr(0, text->find('\n'))));
  }
  return errorf(EINVAL, "{} has no line with {} and a number", column.path, column.key);
}

TimeNs Sampler::due(TimeNs now) const {
  return columns_.empty() ? kNever : next_interval(now);
}

Sample Sampler::take(TimeNs now, const Read& read) {
  Sample sample{now, {}};
  // In the short rest of a run one packet would make a rate that no link has.
  const TimeNs passed = now - std::exchange(last_, now);
  const bool has_rate = !reset_.exchange(false) && passed > 0 && passed >= interval_ / 2;
  const double seconds = has_rate ? static_cast<double>(passed) * 1e-9 : 0;
  for (Column& column : columns_) sample.values.push_back(value_of(column, seconds, read));
  return sample;
}

// A growth by the second, if `seconds` is 0, is not shown.
std::optional<double> Sampler::value_of(Column& column, double seconds, const Read& read) const {
  std::optional<std::string> text = read(column.path);
  std::optional<double> value;
  if (text && column.knob) value = number_of_knob(*column.knob, *text);
  if (text && !column.knob) value = number_of(*text, column.key);
  std::optional<double> shown = value;
  if (column.rate) {
    shown = value && seconds > 0 ? std::optional((*value - column.last.value_or(0)) / seconds)
                                 : std::nullopt;
    column.last = value;
  }
  if (shown && *shown >= column.below) return std::nullopt;
  if (shown) *shown *= column.scale;
  return shown;
}

}  // namespace rocefs
