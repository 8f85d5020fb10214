// ClassOverride: the traffic class that a port sets in packets of its queue pairs, for all
// destinations or for one, in place of their own: tc/<port>/traffic_class of OFED. The syntax of a
// rule for one destination is rocefs's own.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tree/knob.h"
#include "rdma/packet/verbs.h"

namespace rocefs {

inline constexpr KnobRow kClassKnobs[] = {
    {"traffic_class", KnobType::kText, 0, 1023, "", "", "",
     "N: DSCP and ECN bits of all that the port's queue pairs send, but for CNPs, whatever they "
     "ask for and whether they are there already; dst_ip=ADDRESS,tclass=N: of what goes there; "
     "what "
     "is not named stays, -1 in place of N takes one of them away, -1 alone all"},
};

struct ClassRules {
  struct Rule {
    Ip destination{};
    uint8_t traffic_class = 0;
    bool operator==(const Rule&) const = default;
  };
  std::optional<uint8_t> all;
  std::vector<Rule> to;
  bool operator==(const ClassRules&) const = default;

  // One line of text, which parses back to the same rules.
  std::string text() const;
};

class ClassOverride final : public KnobOwner {
 public:
  static constexpr size_t kMaxRules = 16;

  // `changed` runs when the rules change.
  explicit ClassOverride(std::function<void()> changed) : changed_(std::move(changed)) {}
  uint8_t apply_to(const AddressVector& path) const {
    for (const ClassRules::Rule& rule : rules_.to) {
      if (rule.destination == path.remote) return rule.traffic_class;
    }
    return rules_.all.value_or(path.traffic_class);
  }
  void reset();

  // Changes `rules` by words: N (0 to 255), also written `tclass=N` and, as it is shown, `Global
  // tclass=N`, for all destinations; dst_ip=ADDRESS,tclass=N for one. Rules that no word names
  // stay. tclass=-1 removes a rule; the word -1, or no word at all, removes all earlier rules.
  // EINVAL for anything else, for two words of one kind, and for more than kMaxRules.
  static Result<ClassRules> parse(std::string_view text, ClassRules rules = {});

  Result<void> check(std::span<const KnobValue> proposed) const override;
  void apply(std::span<const KnobValue> values) override;

 private:
  std::function<void()> changed_;
  ClassRules rules_;
};

}  // namespace rocefs
