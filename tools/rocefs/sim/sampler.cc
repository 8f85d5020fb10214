#include "tools/rocefs/sim/sampler.h"

#include <cerrno>
#include <cstdlib>

#include "core/base/text.h"
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

bool may_come_later(std::string_view path) {
  auto below_debug = [&](std::string_view directory) {
    return path.starts_with(fmt::format("{}/{}/", kDebugDirectory, directory));
  };
  return below_debug("traffic") || below_debug("inject") || path.find("/pcc/qps/") != path.npos;
}

}  // namespace

Result<void> Sampler::add(Tree& tree, const Scenario::Line& line) {
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
  columns_.push_back(std::move(column));
  return {};
}

TimeNs Sampler::due(TimeNs now) const {
  return columns_.empty() ? kNever : next_interval(now);
}

Sample Sampler::take(TimeNs now, const Read& read) {
  Sample sample{now, {}};
  for (Column& column : columns_) sample.values.push_back(value_of(column, now, read));
  return sample;
}

std::optional<double> Sampler::value_of(Column& column, TimeNs now, const Read& read) const {
  std::optional<std::string> text = read(column.path);
  std::optional<double> value = text ? number_of(*text, column.key) : std::nullopt;
  std::optional<double> shown = value;
  if (column.rate) {
    double interval = static_cast<double>(interval_) * 1e-9;
    shown = value && now > 0 ? std::optional((*value - column.last.value_or(0)) / interval)
                             : std::nullopt;
    column.last = value;
  }
  if (shown && *shown >= column.below) return std::nullopt;
  if (shown) *shown *= column.scale;
  return shown;
}

}  // namespace rocefs
