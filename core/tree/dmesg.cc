#include "core/tree/dmesg.h"
#include "core/tree/knob_file.h"

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/tree/function_file.h"

namespace rocefs {
namespace {

constexpr KnobRow kLogKnobs[] = {
    {"log_level", KnobType::kWord, 0, 0, "info", "err warning info debug", "",
     "lines kept in dmesg: err: failures outside of stores; warning: also refused stores; info: "
     "also starts and resets; debug: also accepted stores"},
};

}  // namespace

void Dmesg::log(LogLevel level, TimeNs at, std::string_view line) {
  if (!logs(level)) return;
  std::string text =
      in_one_line(fmt::format("[{:5}.{:06}] {}", at / kSecond, at % kSecond / kMicrosecond, line));
  lines_.add(text + '\n');
  if (listener_) listener_(level, text);
}

void Dmesg::add_files(Tree& tree, const std::string& directory, Engine& engine) {
  tree.add_file(directory + "/dmesg",
                std::make_shared<FunctionStream>(
                    [this] { return text(); },
                    "log of the daemon: reasons of refused stores, and more or less by log_level"));
  add_knob_files(tree, directory, std::make_shared<KnobSet>(kLogKnobs, engine, this));
}

void Dmesg::apply(std::span<const KnobValue> values) {
  level_.store(static_cast<LogLevel>(std::get<uint64_t>(values[0])));
}

}  // namespace rocefs
