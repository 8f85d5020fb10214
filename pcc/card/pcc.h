// Pcc: programmable congestion control of all devices: modes, management links, files.
#pragma once

#include <atomic>
#include <bitset>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "pcc/card/mgmt.h"
#include "pcc/card/pcc_files.h"
#include "rdma/network/fabric.h"
#include "rdma/nic/device_extension.h"

namespace rocefs {

// Returns null if nothing can run algorithms of the device.
using MakePccBackend =
    std::function<std::unique_ptr<PccBackend>(Device& device, PccBackend::Listener& listener)>;

// Control thread. Outlives the engine's thread and the tree's files.
class Pcc final : public DeviceExtension, public PccClaims {
 public:
  struct Parts {
    Tree& tree;
    Engine& engine;
    Fabric& fabric;
    CallerFiles& files;
    MakePccBackend make_backend;
    OwnDirectories plugins;
    bool mgmt = true;  // management links have addresses at first
    // Ends a program's claim: release() follows.
    std::function<void(uint64_t program)> revoke;
    std::function<void(LogLevel, const std::string&)> log;
    // Log line of the driver, as in the kernel's log.
    std::function<void(const std::string&)> driver_log;
  };

  // Adds the management links. Precondition: devices have register pages, the engine has not
  // started. All parts outlive the object.
  explicit Pcc(Parts parts);
  ~Pcc() override;

  // Devices in host mode, by index; handed over in a takeover.
  using HostModes = std::bitset<kMaxDevices>;
  HostModes host_modes() const;
  // Applies each device's mode, as at a bind, or restores it after a takeover. Before the engine
  // starts, after the knobs of the configuration are set.
  void begin_modes();
  void begin_modes(const HostModes& were);

  // Ends PCC of every device and returns it to its initial state; for `reset`.
  void reset(Answer<void> answer);
  // Visits the knobs that devices keep while they have no driver. Any thread.
  void each_kept_knobs(const std::function<void(const std::shared_ptr<KnobSet>&)>& visit) const;
  // Call after the knobs have their values.
  void finish_reset();

  void bound(Tree& tree, const std::string& directory, Device& device) override;
  void unbound(Device& device) override;

  Result<void> claim(const std::string& device, const Program& program) override;
  void run(const std::string& device, uint64_t program, unsigned pollers,
           Answer<Pages> answer) override;
  void stop(const std::string& device, uint64_t program, Answer<void> answer) override;
  void release(const std::string& device, uint64_t program) override;
  void program_log(const std::string& device, LogLevel level, std::string_view text) override;

 private:
  struct Card;
  Card& card_of(const Device& device);
  // Device claimed by that program, or null.
  PccDevice* claimed(const std::string& device, uint64_t program);
  std::unique_ptr<Card> make_card(Device& device, size_t index);
  void begin_mode(Card& card);
  void reset_from(size_t index, Answer<void> answer);

  const Parts parts_;
  std::vector<std::unique_ptr<Card>> cards_;  // in the fabric's order
  std::unordered_map<const Device*, Card*> by_device_;
  bool modes_begun_ = false;
};

}  // namespace rocefs
