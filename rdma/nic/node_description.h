// NodeDescription: the administrator's name of a device, in class/infiniband/<device>/node_desc and
// in the SMA attribute (IBTA volume 1, 14.2.5.2).
#pragma once

#include <span>
#include <string>
#include <variant>

#include "core/tree/knob.h"

namespace rocefs {

// As many octets as the attribute has, and as the kernel keeps (IB_DEVICE_NODE_DESC_MAX).
inline constexpr KnobRow kNodeDescriptionKnobs[] = {
    {"node_desc", KnobType::kText, 0, 64, "", "", "",
     "what the administrator calls this node; what is longer is cut"},
};

// Core thread, but for initial().
class NodeDescription final : public KnobOwner {
 public:
  explicit NodeDescription(const std::string& device)
      : initial_((device + " emulated RoCEv2 HCA").substr(0, kNodeDescriptionKnobs[0].max)),
        text_(initial_) {}

  const std::string& initial() const { return initial_; }
  const std::string& text() const { return text_; }
  // Order of kNodeDescriptionKnobs.
  void apply(std::span<const KnobValue> values) override {
    text_ = std::get<std::string>(values[0]);
  }
  void reset() { text_ = initial_; }

 private:
  const std::string initial_;
  std::string text_;
};

}  // namespace rocefs
