#include "rdma/class_override.h"

#include <cerrno>
#include <string>
#include <utility>

#include "core/kstrto.h"

namespace rocefs {

Result<std::optional<uint8_t>> ClassOverride::parse(std::string_view text) {
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  if (text.empty() || text == "-1") return std::optional<uint8_t>();
  for (std::string_view prefix : {std::string_view("Global "), std::string_view("tclass=")}) {
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  }
  Result<uint64_t> number = kstrtou64(text, 0);
  if (!number || *number > 255) return Error{EINVAL, "a traffic class is 0 to 255, or -1 for none"};
  return std::optional<uint8_t>(static_cast<uint8_t>(*number));
}

void ClassOverride::reset() {
  if (std::exchange(all_, std::nullopt)) changed_();
}

Result<void> ClassOverride::check(std::span<const KnobValue> values) const {
  auto parsed = parse(std::get<std::string>(values[0]));
  if (!parsed) return parsed.error();
  return {};
}

void ClassOverride::apply(std::span<const KnobValue> values) {
  std::optional<uint8_t> all = *parse(std::get<std::string>(values[0]));
  if (std::exchange(all_, all) != all) changed_();
}

}  // namespace rocefs
