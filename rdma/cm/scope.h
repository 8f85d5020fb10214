// CmScope: the devices that a program's ids may use: those of its host, or all. Each host has port
// numbers of its own, as a network namespace has.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

namespace rocefs {

class PortHost;

class CmScope {
 public:
  CmScope() = default;  // all devices
  explicit CmScope(std::vector<const PortHost*> devices)
      : devices_(std::make_shared<const std::vector<const PortHost*>>(std::move(devices))) {}

  // Null: all devices. Otherwise one of the host's.
  const PortHost* host() const {
    return devices_ && !devices_->empty() ? devices_->front() : nullptr;
  }
  bool covers(const PortHost& device) const {
    return !devices_ || std::find(devices_->begin(), devices_->end(), &device) != devices_->end();
  }
  // Whether some device is in both.
  bool overlaps(const CmScope& other) const {
    if (!devices_ || !other.devices_) return true;
    return std::any_of(devices_->begin(), devices_->end(),
                       [&](const PortHost* device) { return other.covers(*device); });
  }

 private:
  std::shared_ptr<const std::vector<const PortHost*>> devices_;
};

}  // namespace rocefs
