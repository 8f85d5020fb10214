// Gsi: queue pair 1 of a port, the general services interface (IBTA 13.5.2): management datagrams
// that travel as packets. What comes goes to the one agent there is, the communication manager.
#pragma once

#include <cstdint>
#include <span>

#include "rdma/nic/port_host.h"
#include "rdma/packet/packet.h"
#include "rdma/packet/verbs.h"

namespace rocefs {

inline constexpr uint32_t kGsiQpn = 1;
inline constexpr uint32_t kGsiQkey = 0x80010000;

// Who takes the MADs of a port, on the core's thread.
class MadAgent {
 public:
  virtual ~MadAgent() = default;
  // `path` leads back to the sender. False: it is no message that the agent knows.
  virtual bool receive_mad(PortBase& port, const AddressVector& path,
                           std::span<const uint8_t> mad) = 0;
};

class Gsi {
 public:
  explicit Gsi(PortBase& port) : port_(port) {}
  ~Gsi() { clear(); }
  Gsi(const Gsi&) = delete;
  Gsi& operator=(const Gsi&) = delete;

  // It outlives the port's last packet; null: nobody.
  void set_agent(MadAgent* agent) { agent_ = agent; }
  // What waits where priorities are paused; beyond it datagrams are lost, as the CM expects of
  // them.
  static constexpr size_t kMostWaiting = 4096;

  // To the far end's queue pair 1. At most an MTU of 256 octets.
  void send(const AddressVector& path, std::span<const uint8_t> mad);
  // A whole packet for queue pair 1, which stays the caller's.
  void receive(const Packet& packet, const wire::Transport& headers);

  bool ready() const { return !queue_.empty(); }
  const Packet* front() const { return queue_.front(); }
  // Null if there is none.
  Packet* pull() {
    waiting_ -= !queue_.empty();
    return queue_.pop();
  }
  // What has not been transmitted is dropped.
  void clear();

 private:
  PortBase& port_;
  MadAgent* agent_ = nullptr;
  PacketFifo queue_;
  size_t waiting_ = 0;
  uint32_t next_psn_ = 0;
};

}  // namespace rocefs
