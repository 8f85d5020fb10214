// TapChannel: the cable end of a host's interface: moves frames between a TAP device, through the
// engine's I/O, and a port of the fabric.
//
// What the host sends waits here for the port's cable, a bounded number of frames; beyond it the
// device is not read, and the host's kernel keeps its packets. What comes for the host is written
// at once; while a write is under way more frames gather, and neighbouring segments of a connection
// are merged into the next one.
//
// Thread of its packet core. CoreIo owns it (IoOwner).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/loop/engine.h"
#include "rdma/fabric/fabric_resources.h"
#include "rdma/host/frame_merger.h"
#include "rdma/host/tap.h"
#include "rdma/nic/net_interface.h"
#include "rdma/nic/port.h"
#include "rdma/packet/traffic_class.h"

namespace rocefs {

class TapChannel final : public NetInterface, public IoOwner {
 public:
  // `core`: that of the port. All references outlive end().
  TapChannel(PacketCore& core, Port& port, std::shared_ptr<Tap> tap);

  // Plugs into the port, and begins to read.
  void start();
  // Unplugs; CoreIo destroys this object once no request is under way.
  void end();
  // Gives back all packets. After the engine has stopped, before the pool is destroyed.
  void abandon();

  uint8_t waiting() const override { return waiting_; }
  PacketPtr pull(size_t priority) override;
  void receive(PacketPtr&& frame) override;
  void carrier_changed(bool carrier) override;

 private:
  static constexpr size_t kMaxFrame = sizeof(OffloadHeader) + (64 << 10) + 32;
  static constexpr size_t kReads = 8;           // at once, while there is more
  static constexpr size_t kMaxQueued = 256;     // frames that wait for the cable
  static constexpr size_t kMaxGathered = 1024;  // frames that wait for the host's kernel

  struct Read final : IoListener {
    TapChannel* owner = nullptr;
    std::vector<uint8_t> buffer;
    void completed(int result, uint32_t) override { owner->read_done(*this, result); }
  };
  struct Write final : IoListener {
    TapChannel* owner = nullptr;
    Delivery delivery;
    void completed(int result, uint32_t) override { owner->written(result); }
  };

  void read_done(const Read& read, int result);
  void read_on();
  void queue(PacketPtr&& frame);
  void write_gathered();
  void written(int result);
  void settle();
  void drop_packets();
  bool full() const { return queued_ >= kMaxQueued; }

  PacketCore& core_;
  Port& port_;
  PacketPool& pool_;
  InterfaceCounters& counters_;
  const std::shared_ptr<Tap> tap_;
  bool ending_ = false;

  std::array<Read, kReads> reads_;
  size_t reading_ = 0;   // reads under way
  bool drained_ = true;  // the device had no more at the latest read
  std::array<PacketFifo, kPriorities> to_cable_;
  size_t queued_ = 0;
  uint8_t waiting_ = 0;

  Write write_;
  bool writing_ = false;
  PacketFifo to_host_;
  size_t gathered_ = 0;
};

}  // namespace rocefs
