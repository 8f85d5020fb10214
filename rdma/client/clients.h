// Clients: all verbs clients of a fabric. The packet core of a client's device polls its doorbells
// and its copy thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/loop/engine.h"
#include "rdma/client/client.h"
#include "rdma/network/fabric.h"

namespace rocefs {

// Clients of the devices of one packet core, by their numbers. Its thread, or alone.
class CoreClients final : public Poller {
 public:
  CoreClients(PacketCore& core, SharedMemory page);

  PacketCore& core() { return core_; }
  // Any thread: the page that each of them maps.
  int page() const { return page_.descriptor(); }
  void add(uint64_t id, Client& client) { clients_[id] = &client; }
  // The process stays until all moves of its memory are done.
  void remove(uint64_t id);

  Found poll(bool more) override;
  bool may_sleep() override;
  void awake() override;
  TimeNs lag() override;

 private:
  void cancel_late(TimeNs now);

  PacketCore& core_;
  const SharedMemory page_;
  std::map<uint64_t, Client*> clients_;
  Event cancel_late_ = event_of<&CoreClients::cancel_late>(this);  // while copiers have moves
  std::vector<std::shared_ptr<Process>> leaving_;                  // processes with pending answers
};

// Core thread, as a command.
class Clients {
 public:
  // Before the engine starts. Fails with the reason if there is no shared memory.
  static Result<std::unique_ptr<Clients>> create(Fabric& fabric, Engine& engine);
  ~Clients();

  // Any thread: the page that clients of this device map.
  int page(std::string_view device) const;

  // Resources of a new client.
  struct Arrival {
    std::shared_ptr<Process> process;
    std::shared_ptr<SharedMemory> page;
    Fd doorbell;  // an eventfd, which clients may write to
    uint32_t events = 0;
    rocefs_hello hello{};
  };
  // Answers with the device's attributes, or an error: ENODEV, EOPNOTSUPP under the virtual clock,
  // EPERM if the process may not be accessed.
  void add(uint64_t id, Arrival arrival, Client::Reply reply);
  // Null if there is none.
  Client* find(uint64_t id);
  void remove(uint64_t id);

  // All objects of programs, and the queue pairs of built-in traffic, one a line: DEVICE KIND and
  // values, KEY=VALUE.
  std::string resources();

  // After the engine has stopped: takes the results of copy threads.
  void take_results();

 private:
  struct Entry {
    std::unique_ptr<Client> client;
    CoreClients* polled = nullptr;
    std::shared_ptr<Fd> doorbell;
  };

  Clients(Fabric& fabric, Engine& engine);
  CoreClients& clients_of(const Device& device) { return *cores_[device.fabric().core()]; }
  void describe(const Device& device, rocefs_device_attr& out) const;

  Fabric& fabric_;
  Engine& engine_;
  std::vector<std::unique_ptr<CoreClients>> cores_;  // by packet core
  std::map<const Device*, Client::Shared> shared_;
  std::map<uint64_t, Entry> clients_;
};

}  // namespace rocefs
