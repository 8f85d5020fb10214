// Pcc: programmable congestion control of all devices: their modes, their management links, their
// files.
#pragma once

#include <atomic>
#include <bitset>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pcc/card/mgmt.h"
#include "pcc/card/pcc_files.h"
#include "rdma/network/fabric.h"
#include "rdma/nic/device_extension.h"

namespace rocefs {

// Null where nothing can run algorithms of the device.
using MakePccBackend =
    std::function<std::unique_ptr<PccBackend>(Device& device, PccBackend::Listener& listener)>;

// Control thread. It outlives the engine's thread and the tree's files.
class Pcc final : public DeviceExtension, public PccClaims {
 public:
  struct Parts {
    Tree& tree;
    Engine& engine;
    Fabric& fabric;
    CallerFiles& files;
    MakePccBackend make_backend;
    OwnDirectories plugins;
    bool mgmt = true;  // whether the management links have addresses at first
    // A program's claim has ended: release() follows.
    std::function<void(uint64_t program)> revoke;
    std::function<void(LogLevel, const std::string&)> log;
    // A line of the driver's, as the kernel would have it.
    std::function<void(const std::string&)> driver_log;
  };

  // Adds the management links. Devices have their register pages; the engine has not started. All
  // outlive it.
  explicit Pcc(Parts parts);
  ~Pcc() override;

  // Which devices are in host mode, by index: what a successor begins with.
  static constexpr size_t kMaxDevices = 256;
  using HostModes = std::bitset<kMaxDevices>;
  HostModes host_modes() const;
  // Before the engine starts, once the knobs of the configuration are what they are: each device's
  // mode begins to be, as at a bind, or is what it was when a successor begins.
  void begin_modes();
  void begin_modes(const HostModes& were);

  // For `reset`: every device's PCC ends, and is as at first.
  void reset(Answer<void> answer);
  // Once the knobs have their values.
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
  // Of the program that has claimed that device; null where it has not.
  PccDevice* claimed(const std::string& device, uint64_t program);
  std::unique_ptr<Card> make_card(Device& device, size_t index);
  void begin_mode(Card& card);
  void reset_from(size_t index, Answer<void> answer);

  const Parts parts_;
  std::vector<std::unique_ptr<Card>> cards_;  // in the order of the fabric's devices
  bool modes_begun_ = false;
};

}  // namespace rocefs
