// Hosts: the machines around the NICs of a mount: which there are, the descriptors of their
// namespaces and interfaces, and their files kernel/debug/rocefs/hosts/NAME/. A program makes them
// (rdma/uapi/host.h, HostServer); here they are kept.
//
// Control thread.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/log_limit.h"
#include "core/loop/engine.h"
#include "core/loop/worker.h"
#include "core/process/closer.h"
#include "core/tree/dmesg.h"
#include "core/tree/tree.h"
#include "rdma/host/interface_parking.h"
#include "rdma/host/route_watch.h"
#include "rdma/host/tap_channel.h"
#include "rdma/network/fabric.h"
#include "rdma/nic/device_extension.h"
#include "rdma/uapi/host.h"

namespace rocefs {

// An interface of a host: one for each port of its devices.
struct HostInterface {
  Port* port = nullptr;
  std::shared_ptr<Tap> tap;       // null: not plugged
  TapChannel* channel = nullptr;  // the engine's; core thread
  std::set<Ip> left_out;          // its addresses that are no GIDs: the table is full
};

// All that a maker hands over for a host, which takes it when it starts.
struct HostParts {
  std::vector<std::shared_ptr<Tap>> taps;  // by interface; null: not given
  std::array<StrangerFd, ROCEFS_HOST_NAMESPACES> namespaces;
  StrangerFd route;
  std::array<StrangerFd, 2> parking_sockets;
};

struct Host {
  std::string name;
  std::vector<Device*> devices;
  std::vector<HostInterface> interfaces;
  std::array<StrangerFd, ROCEFS_HOST_NAMESPACES> namespaces;
  std::string network;  // name of its network namespace: net:[INODE]
  std::unique_ptr<RouteWatch> watch;
  std::shared_ptr<InterfaceParking> parking;  // while it runs
  bool running = false;
  uid_t maker = 0;                   // user whose namespaces these are
  bool attached = false;             // in a network namespace that was there before
  std::unique_ptr<HostParts> given;  // for its next start
};

class Hosts final : public DeviceExtension {
 public:
  // Keeps a copy of a descriptor beyond this process, by name; -1: forgets it.
  using Keep = std::function<void(const std::string& name, int descriptor)>;

  using Log = std::function<void(LogLevel level, const std::string& line)>;

  // `directory`: kernel/debug/rocefs/hosts. References outlive the hosts.
  Hosts(Engine& engine, PollLoop& loop, Fabric& fabric, Tree& tree, const std::string& directory,
        Log log);
  // After the engine has stopped, before the fabric is destroyed.
  ~Hosts();

  // From now on `keep` is called for the descriptors of hosts that start or end. Hosts whose
  // descriptors are all among `kept` run again: they were kept by an earlier process.
  void keep(Keep keep, std::map<std::string, Fd> kept, const Closer& closer);

  // The host in whose network namespace the process runs; null: none, or it may not be looked at.
  const Host* of_process(pid_t pid) const;
  // Searches in the network of the host that has the device; null unless it runs.
  NeighbourSearch* neighbours(const PortHost& device) const;
  // Null if there is none of that name.
  Host* find(std::string_view name);
  bool all_running() const;

  // Each takes what a maker has handed over. EINVAL for a descriptor of another kind or a number
  // out of range, EBUSY for what is there already.
  void plug(Host& host, size_t number, StrangerFd tap, Answer<void> answer);
  Result<void> watch(Host& host, StrangerFd route);
  Result<void> park(Host& host, size_t number, StrangerFd route);
  Result<void> set_namespace(Host& host, size_t number, StrangerFd fd);
  // EINVAL if a part is missing, EBUSY if another host is in that network namespace. A host that
  // runs goes on until the new parts are complete, and ends then. `maker`: who handed them over.
  Result<void> start(Host& host, bool attached, uid_t maker);
  // Takes back what a maker has handed over for a host that it has not started.
  static void forget(Host& host) { host.given.reset(); }
  // EBUSY if another host is in that network namespace, EINVAL if it is none.
  Result<void> check_network(const Host& host, const StrangerFd& network) const;
  // Takes back all that a host has, whether it runs or not.
  void stop(Host& host);
  // Closes the namespaces, which hold mounts of the tree: nobody can enter any more. Programs that
  // run on the hosts keep them, and their interfaces.
  void forget_namespaces();

  // Without its driver a device's interfaces are in no network namespace that anybody sees; they
  // come back as they were at first.
  void bound(Tree& tree, const std::string& directory, Device& device) override;
  void unbound(Device& device) override;
  void when_settled(Task done) override;

 private:
  Host& find_or_add(const std::string& name);
  static HostParts& parts_of(Host& host);
  Result<void> check_network(const Host& host, const std::string& network) const;
  void add_files(Tree& tree, const std::string& directory);
  void add_files(Tree& tree, const std::string& at, Host* host);
  PacketCore& core_of(Port& port);
  void plug_in(Host& host, size_t number);
  void unplug(HostInterface& interface);
  void park_interfaces(const Host& host, const Device& device);
  void put_back_interfaces(const Host& host, const Device& device);
  void change_network(std::function<Result<void>()> change);
  std::vector<InterfaceLine> lines_of(const Host& host) const;
  void keep_all(const Host& host, bool wanted) const;
  bool restore(Host& host, std::map<std::string, Fd>& kept, const Closer& closer);
  void interface_changed(Host& host, const std::string& name, const RouteWatch::State* state);
  void say_left_out(HostInterface& interface, const std::set<Ip>& addresses);
  void say_limited(const std::string& line);

  Engine& engine_;
  PollLoop& loop_;
  Keep keep_;
  Fabric& fabric_;
  Worker worker_;
  const Log log_;
  LogLimit said_;  // of say_limited()
  std::vector<std::unique_ptr<Host>> hosts_;
  std::map<std::string, Host*, std::less<>> by_name_;
  std::set<const Device*> unbound_;
};

}  // namespace rocefs
