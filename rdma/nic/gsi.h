// Gsi: queue pair 1 of a port, the general services interface (IBTA 13.5.2): management datagrams
// that travel as packets. Its one agent is the communication manager.
#pragma once

#include <cstdint>
#include <span>

#include "rdma/nic/port_host.h"
#include "rdma/packet/packet.h"
#include "rdma/packet/verbs.h"

namespace rocefs {

inline constexpr uint32_t kGsiQpn = 1;
inline constexpr uint32_t kGsiQkey = 0x80010000;

// MadAgent: receiver of a port's MADs. Core thread.
class MadAgent {
 public:
  virtual ~MadAgent() = default;
  // `path` leads back to the sender. False for a message that the agent does not know.
  virtual bool receive_mad(PortBase& port, const AddressVector& path,
                           std::span<const uint8_t> mad) = 0;
};

class Gsi {
 public:
  explicit Gsi(PortBase& port) : port_(port) {}
  Gsi(const Gsi&) = delete;
  Gsi& operator=(const Gsi&) = delete;

  // `agent` outlives the last packet of the port; null: none.
  void set_agent(MadAgent* agent) { agent_ = agent; }
  // Limit of datagrams that wait while their priority is paused. More are dropped: the CM
  // retransmits.
  static constexpr size_t kMaxWaiting = 4096;

  // Sends to queue pair 1 of the far end. At most 256 octets.
  void send(const AddressVector& path, std::span<const uint8_t> mad);
  // Handles a valid packet for queue pair 1; it stays the caller's.
  void receive(const Packet& packet, const wire::Transport& headers);

  bool ready() const { return !queue_.empty(); }
  const Packet* front() const { return queue_.front(); }
  // Null if there is none.
  PacketPtr pull() {
    waiting_ -= !queue_.empty();
    return queue_.pop();
  }
  // Drops all that has not been transmitted.
  void clear() {
    queue_.clear();
    waiting_ = 0;
  }

 private:
  PortBase& port_;
  MadAgent* agent_ = nullptr;
  PacketFifo queue_;
  size_t waiting_ = 0;
  uint32_t next_psn_ = 0;
};

}  // namespace rocefs
