// Clients: all verbs clients of a fabric, for the packet core, which polls their doorbells and
// their copy threads. Core thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "core/loop/engine.h"
#include "rdma/client/client.h"
#include "rdma/network/fabric.h"

namespace rocefs {

class Clients final : public Poller {
 public:
  // Before the engine starts. Fails with the reason if there is no shared memory.
  static Result<std::unique_ptr<Clients>> create(Fabric& fabric, Engine& engine);
  ~Clients() override;

  // Any thread: the page that every client maps.
  int page() const { return page_.descriptor(); }

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

  Found poll(bool more) override;
  bool may_sleep() override;
  void awake() override;
  TimeNs lag() override;

 private:
  struct Entry {
    std::unique_ptr<Client> client;
    Fd doorbell;
  };

  Clients(Fabric& fabric, Engine& engine, SharedMemory page);
  void cancel_late(TimeNs now);
  void describe(const Device& device, rocefs_device_attr& out) const;

  Fabric& fabric_;
  Engine& engine_;
  SharedMemory page_;
  std::map<const Device*, Client::Shared> shared_;
  std::map<uint64_t, Entry> clients_;
  Event cancel_late_ = event_of<&Clients::cancel_late>(this);  // while copiers have moves
  std::vector<std::shared_ptr<Process>> leaving_;              // processes with pending answers
};

}  // namespace rocefs
