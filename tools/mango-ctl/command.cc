#include "tools/mango-ctl/command.h"

#include <fmt/format.h>

#include <type_traits>

#include "core/base/kstrto.h"
#include "core/base/text.h"

namespace rocefs {

std::vector<std::string> Argument::spellings() const {
  std::vector<std::string> all;
  for (std::string_view one : split(name, ",")) all.emplace_back(one);
  return all;
}

std::string Command::word() const {
  return path.substr(path.rfind(' ') + 1);
}

std::string Command::parent() const {
  size_t end = path.rfind(' ');
  return end == path.npos ? "" : path.substr(0, end);
}

void describe(Argument& argument, const Target& target) {
  std::visit(
      [&](auto* value) {
        using Value = std::remove_pointer_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
          argument.repeated = true;
        } else if (!argument.positional() && *value != Value{}) {
          argument.initial = fmt::format("{}", *value);
        }
      },
      target);
}

std::string refuse_all(const std::string& device) {
  return device == "all" ? "one device is wanted, not all" : "";
}

std::string want_number(const std::string& text) {
  return kstrtou64(text, 0) ? "" : fmt::format("'{}': a number is wanted", text);
}

const std::vector<Argument>& common_options() {
  static const std::vector<Argument> options = {
      {.name = "-h,--help", .help = "print this text and exit"},
      {.name = "--mount",
       .value = "DIR",
       .help = "mount point of the rocefs",
       .offer = Offer::kDirectories},
      {.name = "--json", .help = "print what is read as an array of JSON objects"},
  };
  return options;
}

}  // namespace rocefs
