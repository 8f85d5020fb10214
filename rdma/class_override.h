// ClassOverride: the traffic class that a port gives to all that its queue pairs send, as
// tc/<port>/traffic_class of OFED has it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "core/knob.h"

namespace rocefs {

inline constexpr KnobRow kClassKnobs[] = {
    {"traffic_class", KnobType::kText, 0, 31, "", "", "",
     "N: DSCP and ECN bits of all that the port's queue pairs send, but for CNPs, whatever they "
     "ask for and whether they are there already; -1: as they ask"},
};

class ClassOverride final : public KnobOwner {
 public:
  // `changed` runs when it is another one.
  explicit ClassOverride(std::function<void()> changed) : changed_(std::move(changed)) {}
  uint8_t apply_to(uint8_t traffic_class) const { return all_.value_or(traffic_class); }
  void reset();

  // -1 or nothing: none; 0 to 255; `Global tclass=N` and `tclass=N` are understood, as it is shown.
  // EINVAL for anything else.
  static Result<std::optional<uint8_t>> parse(std::string_view text);

  Result<void> check(std::span<const KnobValue> proposed) const override;
  void apply(std::span<const KnobValue> values) override;

 private:
  std::function<void()> changed_;
  std::optional<uint8_t> all_;
};

}  // namespace rocefs
