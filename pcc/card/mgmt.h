// Mgmt: class/net/mango_mgmtN, the management link between the host and a card's processor: the
// addresses of its two ends. Stays while the driver is unbound.
#pragma once

#include <memory>
#include <string>

#include "core/loop/engine.h"
#include "core/tree/knob.h"
#include "core/tree/tree.h"

namespace rocefs {

inline constexpr KnobRow kMgmtKnobs[] = {
    {"host_ip", KnobType::kText, 0, 15, "", "", "",
     "the host's address on the link to the card's processor (IPv4)"},
    {"soc_ip", KnobType::kText, 0, 15, "", "", "",
     "the card's processor's address, of the same subnet"},
    {"subnet", KnobType::kText, 0, 2, "", "", "",
     "1 to 30, how many bits of both addresses are the same. All three are empty while the link is "
     "not set up: several knobs change together by kernel/debug/rocefs/set"},
};

// Control thread, except for calls of the engine to a KnobOwner. Outlives the engine's thread.
class Mgmt final : public KnobOwner {
 public:
  // Addresses by device index: 192.168.10.1 and .2 of the first, 192.168.20.1 and .2 of the second.
  // Empty at first unless `configured`.
  Mgmt(Tree& tree, size_t index, Engine& engine, bool configured);

  const std::string& name() const { return name_; }
  const std::shared_ptr<KnobSet>& knobs() const { return set_; }
  // EHOSTUNREACH without addresses.
  Result<void> reachable() const;

  // Accepts empty addresses, or two of one subnet that its hosts can have; else EINVAL.
  Result<void> check(std::span<const KnobValue> proposed) const override;
  void apply(std::span<const KnobValue>) override {}

 private:
  const std::string name_;
  std::shared_ptr<KnobSet> set_;
};

}  // namespace rocefs
