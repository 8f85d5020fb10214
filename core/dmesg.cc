#include "core/dmesg.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/function_file.h"

namespace rocefs {
namespace {

constexpr KnobRow kLogKnobs[] = {
    {"log_level", KnobType::kWord, 0, 0, "info", "err warning info debug", "",
     "what dmesg tells: err, what failed by itself; warning, also refused stores; info, also "
     "starts "
     "and resets; debug, also accepted stores"},
};

}  // namespace

void Dmesg::log(LogLevel level, TimeNs at, std::string_view line) {
  if (!logs(level)) return;
  std::string text =
      fmt::format("[{:5}.{:06}] {}", at / kSecond, at % kSecond / kMicrosecond, line);
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  text += '\n';
  save(text);
  add(std::move(text));
}

void Dmesg::add(std::string text) {
  bytes_ += text.size();
  lines_.push_back(std::move(text));
  while (bytes_ > max_bytes_ && lines_.size() > 1) {
    bytes_ -= lines_.front().size();
    lines_.pop_front();
  }
}

// The ring's oldest bytes may be overwritten by a line that was never committed: as much as one
// line may have is left out.
void Dmesg::keep(Journal& journal, SavedLog& saved) {
  constexpr uint64_t kMargin = 8 * 1024;
  end_ = saved.end;
  std::string text;
  for (uint64_t at = end_ - std::min(end_, SavedLog::kSize - kMargin); at < end_; ++at) {
    text += saved.bytes[at % SavedLog::kSize];
  }
  size_t begin = end_ > SavedLog::kSize - kMargin ? text.find('\n') + 1 : 0;
  while (begin < text.size()) {
    size_t next = text.find('\n', begin) + 1;
    add(text.substr(begin, next - begin));
    begin = next;
  }
  saved_ = &saved;
  journal.before_commit([this, &journal] {
    if (saved_->end != end_) journal.stage(saved_->end, end_);
  });
}

void Dmesg::save(std::string_view text) {
  if (!saved_) return;
  for (char c : text) saved_->bytes[end_++ % SavedLog::kSize] = c;
}

std::string Dmesg::text() const {
  std::string text;
  text.reserve(bytes_);
  for (const std::string& line : lines_) text += line;
  return text;
}

void Dmesg::add_files(Tree& tree, const std::string& directory, Engine& engine) {
  tree.add_file(directory + "/dmesg",
                std::make_shared<FunctionStream>([this] { return text(); },
                                                 "the reason of every refusal, and more or less as "
                                                 "log_level says"));
  std::make_shared<KnobSet>(kLogKnobs, engine, this)->add_files(tree, directory);
}

void Dmesg::apply(std::span<const KnobValue> values) {
  level_.store(static_cast<LogLevel>(std::get<uint64_t>(values[0])));
}

}  // namespace rocefs
