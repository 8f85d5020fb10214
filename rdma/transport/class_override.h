// ClassOverride: the traffic class that a port gives to what its queue pairs send, to all or to one
// destination, in place of what they ask for: tc/<port>/traffic_class of OFED. How a rule for a
// destination is written is ours.
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

  // As it is shown, on one line: parses back to the same.
  std::string text() const;
};

class ClassOverride final : public KnobOwner {
 public:
  static constexpr size_t kMaxRules = 16;

  // `changed` runs when it is another one.
  explicit ClassOverride(std::function<void()> changed) : changed_(std::move(changed)) {}
  uint8_t apply_to(const AddressVector& path) const {
    for (const ClassRules::Rule& rule : rules_.to) {
      if (rule.destination == path.remote) return rule.traffic_class;
    }
    return rules_.all.value_or(path.traffic_class);
  }
  void reset();

  // Changes the rules by words: N, 0 to 255, as `tclass=N` and `Global tclass=N` too, which is
  // shown; dst_ip=ADDRESS,tclass=N for one destination each. Rules that no word is of stay.
  // tclass=-1 ends a rule; the word -1, and no word, end all that were there. EINVAL for anything
  // else, for two words of one kind, and for more than kMaxRules.
  static Result<ClassRules> parse(std::string_view text, ClassRules rules = {});

  Result<void> check(std::span<const KnobValue> proposed) const override;
  void apply(std::span<const KnobValue> values) override;

 private:
  std::function<void()> changed_;
  ClassRules rules_;
};

}  // namespace rocefs
