// Instance: engine, fabric and tree of one configuration, wired together. A mount serves it, a
// simulation runs it.
#pragma once

#include <sys/resource.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/config/config.h"
#include "core/config/topology.h"
#include "core/loop/engine.h"
#include "core/loop/poll_loop.h"
#include "core/tree/caller_file.h"
#include "core/tree/clock_files.h"
#include "core/tree/dmesg.h"
#include "core/tree/reset.h"
#include "core/tree/tree.h"
#include "pcc/card/pcc.h"
#include "rdma/host/hosts.h"
#include "rdma/network/fabric.h"
#include "rdma/traffic/traffic.h"
#include "rdma/tree/capture_file.h"
#include "rdma/tree/files.h"
#include "rdma/tree/inject.h"
#include "rdma/tree/pci_driver.h"
#include "rdma/uplink/uplink_addresses.h"
#include "rdma/workload/loads.h"
#include "tools/rocefs/command/exit_status.h"
#include "tools/rocefs/instance/connections.h"
#include "tools/rocefs/instance/knob_settings.h"
#include "tools/rocefs/instance/mads.h"

namespace rocefs {

// Checks mode and dilation, which are the file's or the command line's. EINVAL for a virtual clock
// with a dilation or with an uplink in the file.
Result<void> check_clock(const Config& config, ClockMode mode, uint64_t dilation);

inline constexpr std::string_view kDebugDirectory = "kernel/debug/rocefs";

// A line of [knobs] or [variant] that is refused.
struct SettingRefusal : Failure {
  const KnobSetting* setting;
};

// Control thread. Its parts have their own rules.
class Instance {
 public:
  struct Options {
    Engine::Options engine;
    uint64_t seed = 1;
    uid_t uid = 0;
    gid_t gid = 0;
    mode_t mode = 0644;
    OwnDirectories plugins = {};                 // of PCC
    std::optional<gid_t> plugin_gid = {};        // group of mango-pccd; empty: gid
    bool takes_over = false;                     // takes over from a worker that died
    rlim_t open_files = RLIM_INFINITY;           // soft limit of children that run others' code
    SavedAddresses* uplink_addresses = nullptr;  // outlives a worker; null: not saved
    // Called when a program's claim on a device has ended.
    std::function<void(uint64_t program)> revoke_program = nullptr;
  };

  // `config` and all that `options` points to outlive the instance. The engine is not started:
  // apply() stores knobs of the configuration at once.
  static Result<std::unique_ptr<Instance>> create(const Config& config, const Options& options);
  ~Instance();

  // Adds all files. A reset calls `drop_clients`, which may be empty.
  void add_files(std::function<void()> drop_clients);
  // Stores `settings` before the engine starts; a path may be a pattern (core/tree/file_walk.h).
  // Knobs are one transaction; what only other settings make, and triggers, follow in their order.
  // The reason of a failure is FILE:LINE: PATH: WHY.
  std::optional<SettingRefusal> apply(const std::vector<KnobSetting>& settings);
  // Looks for what apply() would refuse at once: paths, and values of knobs. Changes nothing.
  std::optional<SettingRefusal> check(const std::vector<KnobSetting>& settings);
  // Runs `ended` at a reset, on the core thread, when flows of traffic/ have ended: for flows that
  // are not there. Before the engine starts.
  void on_reset(std::function<void()> ended) { on_reset_ = std::move(ended); }
  // Makes the present values the defaults that a reset restores. Warns of them, which the values
  // before may not have called for, and of those to come.
  void keep_as_defaults();

  const Topology& topology() const { return topology_; }
  PollLoop& loop() { return loop_; }
  Dmesg& dmesg() { return dmesg_; }
  Engine& engine() { return *engine_; }
  Fabric& fabric() { return *fabric_; }
  Tree& tree() { return *tree_; }
  PciDriver& driver() { return *driver_; }
  Pcc& pcc() { return *pcc_; }
  Connections& connections() { return *connections_; }
  Hosts& hosts() { return *hosts_; }
  Traffic& traffic() { return *traffic_; }  // until end_traffic()
  ClockFiles& clock_files() { return *clock_files_; }
  CaptureFile& capture() { return *capture_; }
  CallerFiles& files() { return *files_; }

  void log(LogLevel level, std::string_view line);
  // Call in this order: stop_engine() finishes files that are being written and stops the engine,
  // end_traffic() frees the flows.
  void stop_engine();
  void end_traffic() {
    loads_.reset();
    traffic_.reset();
  }

 private:
  Instance(const Config& config, const Options& options);
  Result<void> open_registers();
  Result<void> open_uplinks();
  std::shared_ptr<Attribute> find_setting(const std::string& path);
  SettingRefusal refused(const KnobSetting& setting, std::string why) const;
  std::optional<SettingRefusal> sort(const std::vector<KnobSetting>& settings, KnobSettings& knobs,
                                     std::vector<const KnobSetting*>& others);
  Result<void> store_now(const std::string& path, const std::string& value);
  void add_pcc();
  void add_mads(const std::string& debug, const LinkKnobs& knobs);
  void add_connections();
  std::unique_ptr<PccBackend> make_pcc_backend(Device& device, PccBackend::Listener& listener);
  ResetParts reset_parts(std::function<void()> drop_clients, const LinkKnobs& knobs);

  const Config& config_;
  const Options options_;
  const Topology topology_;
  // Members are destroyed in reverse order: servers before the parts that they serve.
  Dmesg dmesg_;
  PollLoop loop_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<Tree> tree_;
  std::unique_ptr<Pcc> pcc_;
  std::unique_ptr<Mads> mads_;
  std::unique_ptr<Connections> connections_;
  std::unique_ptr<Hosts> hosts_;
  std::unique_ptr<PciDriver> driver_;
  std::unique_ptr<ClockFiles> clock_files_;
  std::unique_ptr<Traffic> traffic_;
  std::unique_ptr<Loads> loads_;
  std::unique_ptr<Inject> inject_;
  std::shared_ptr<CaptureFile> capture_;
  std::unique_ptr<CallerFiles> files_;
  std::function<void()> on_reset_;  // core thread; may be empty
};

}  // namespace rocefs
