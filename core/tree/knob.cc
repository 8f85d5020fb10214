#include "core/tree/knob.h"

#include <algorithm>
#include <cerrno>

#include "core/base/kstrto.h"
#include "core/base/text.h"
#include "core/base/units.h"

namespace rocefs {
namespace {

Result<KnobValue> in_range(const KnobRow& row, Result<uint64_t> number) {
  if (!number) return number.error();
  if (*number >= row.min && *number <= row.max) return KnobValue(*number);
  KnobValue min{row.min}, max{row.max}, value{*number};
  return errorf(EINVAL, "{} is outside {} to {}", format_knob(row, value), format_knob(row, min),
                format_knob(row, max));
}

Result<KnobValue> parse_text(const KnobRow& row, std::string_view text) {
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  if (text.size() > row.max) return errorf(EINVAL, "longer than {} bytes", row.max);
  for (char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      return Error{EINVAL, "one line of printable text is wanted"};
    }
  }
  return KnobValue(std::string(text));
}

Result<uint64_t> as_unsigned(Result<TimeNs> duration) {
  if (!duration) return duration.error();
  return static_cast<uint64_t>(*duration);
}

}  // namespace

Result<KnobValue> parse_knob(const KnobRow& row, std::string_view text) {
  switch (row.type) {
    case KnobType::kUint:
      return in_range(row, kstrtou64(text, 0));
    case KnobType::kDecimal:
      return in_range(row, kstrtou64(text, 10));
    case KnobType::kRate:
      return in_range(row, parse_rate(text));
    case KnobType::kSize:
      return in_range(row, parse_size(text));
    case KnobType::kDuration:
      return in_range(row, as_unsigned(parse_duration(text)));
    case KnobType::kBool: {
      Result<bool> value = kstrtobool(text);
      if (!value) return value.error();
      return KnobValue(uint64_t{*value});
    }
    case KnobType::kWord: {
      std::vector<std::string_view> words = split(row.words, " ");
      Result<size_t> index = match_word(text, words);
      if (!index) return errorf(index.error().code, "one of: {}", row.words);
      return KnobValue(uint64_t{*index});
    }
    case KnobType::kProbability: {
      Result<double> value = parse_probability(text);
      if (!value) return value.error();
      return KnobValue(*value);
    }
    case KnobType::kText:
      return parse_text(row, text);
  }
  return Error{EINVAL, "unknown type of knob"};
}

std::string format_knob(const KnobRow& row, const KnobValue& value) {
  switch (row.type) {
    case KnobType::kUint:
    case KnobType::kDecimal:
    case KnobType::kBool:
      return fmt::format("{}", std::get<uint64_t>(value));
    case KnobType::kWord:
      return std::string(split(row.words, " ")[std::get<uint64_t>(value)]);
    case KnobType::kRate:
      return format_rate(std::get<uint64_t>(value));
    case KnobType::kSize:
      return format_size(std::get<uint64_t>(value));
    case KnobType::kDuration:
      return format_duration(static_cast<TimeNs>(std::get<uint64_t>(value)));
    case KnobType::kProbability:
      return format_probability(std::get<double>(value));
    case KnobType::kText:
      return std::get<std::string>(value);
  }
  return {};
}

std::string knob_values(const KnobRow& row) {
  switch (row.type) {
    case KnobType::kBool:
      return "0, 1, y, n, on or off";
    case KnobType::kWord: {
      std::string words(row.words);
      std::replace(words.begin(), words.end(), ' ', '|');
      return words;
    }
    case KnobType::kText:
      return fmt::format("a line of at most {} bytes", row.max);
    case KnobType::kProbability:
      return "0 to 1";
    case KnobType::kUint:
    case KnobType::kDecimal:
    case KnobType::kRate:
    case KnobType::kSize:
    case KnobType::kDuration:
      break;
  }
  std::string range = fmt::format("{} to {}", format_knob(row, row.min), format_knob(row, row.max));
  // Values of the other types have their unit with them.
  const bool bare = row.type == KnobType::kUint || row.type == KnobType::kDecimal;
  return bare && !row.unit.empty() ? fmt::format("{} ({})", range, row.unit) : range;
}

Result<void> KnobOwner::check(std::span<const KnobValue>) const {
  return {};
}

std::vector<KnobValue> initial_values(std::span<const KnobRow> rows) {
  std::vector<KnobValue> values;
  for (const KnobRow& row : rows) values.push_back(*parse_knob(row, row.initial));
  return values;
}

KnobSet::KnobSet(std::span<const KnobRow> rows, Engine& engine, KnobOwner* owner,
                 std::vector<KnobValue> start)
    : rows_(rows), engine_(engine), owner_(owner), applied_(std::move(start)) {
  if (applied_.empty()) applied_ = initial_values(rows_);
  published_ = defaults_ = applied_;
}

void KnobSet::set_consequences(size_t index, Consequences consequences) {
  consequences_[index] = std::move(consequences);
}

bool KnobSet::publish(size_t index, const KnobValue& value) {
  return std::exchange(published_[index], value) != value;
}

void KnobSet::announce(size_t index) {
  if (index < files_.size()) {
    if (auto file = files_[index].lock()) file->notify();
  }
  for (Task& listener : listeners_) listener();
}

void KnobSet::set_file(size_t index, std::weak_ptr<Attribute> file) {
  if (files_.size() < rows_.size()) files_.resize(rows_.size());
  files_[index] = std::move(file);
}

}  // namespace rocefs
