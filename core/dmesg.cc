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
  lines_.add(std::move(text));
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
