// PcapCapture: writes packets transmitted by NIC ports, and all that links transmit whose knob
// `capture` is on, to a pcap or pcapng file (nanosecond time stamps, Ethernet; pcapng with an
// interface per port and link), through the owner of the file. Drops nothing: while the writer is
// behind, engine time is held. Several packet cores take turns: each waits while another one copies
// a packet.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/counter.h"
#include "core/loop/engine.h"
#include "core/takeover/shared_memory.h"
#include "rdma/network/fabric.h"

namespace rocefs {

enum class CaptureFormat : uint8_t { kPcap, kPcapng };

// Core's thread, except packets(); captured() and the calls of links, on the core of the port or
// link.
class PcapCapture final : public CaptureSink, private LinkTap {
 public:
  // Memory of `count` chunks of the file, `size` octets each, shared with the writer.
  struct Slots {
    std::shared_ptr<const SharedMemory> memory;
    uint8_t* first;
    size_t size, count;
  };
  // `size` octets of a slot, from `skip` on, for the file at `offset` + `skip`.
  struct Piece {
    size_t slot;
    uint64_t offset;
    size_t skip, size;
  };
  // `write` gets each piece; the writer answers by written().
  PcapCapture(Engine& engine, Fabric& fabric, Slots slots, CaptureFormat format,
              std::function<void(const Piece&)> write);

  void start();
  // `size` octets of the piece are in the file. 0: the file takes no more, and the capture ends.
  void written(size_t slot, uint64_t size);
  // Takes no more packets; `closed` runs when every octet is written.
  void stop(std::function<void()> closed);
  void captured(const Port& from, const Packet& packet, TimeNs now) override;

  // Any thread.
  uint64_t packets() const { return packets_.get(); }

 private:
  static constexpr size_t kMaxRecord = 8192;

  struct Chunk {
    uint8_t* bytes;
    size_t size = 0;
    size_t written = 0;
    uint64_t offset = 0;
  };

  void transmitted(const Link& link, Packet& packet, TimeNs now) override;
  void pause_sent(const Link& link, size_t priority, bool pause, TimeNs at) override;
  void set_taps(LinkTap* tap);
  void append(const void* data, size_t size);
  void begin_section();
  uint32_t add_interface(const void* of, const std::string& name);
  void append_interface(const std::string& name);
  // Parts of a record, in order. Below, with the mutex.
  using Parts = std::initializer_list<std::span<const uint8_t>>;
  void record(uint32_t interface, TimeNs at, Parts parts);
  uint32_t interface_of(const Link& link);
  void flush();
  void take_chunk();
  void submit(const Chunk* chunk);
  bool room() const { return current_ && current_->size + kMaxRecord <= slots_.size; }
  void set_holding(bool holding);
  void close_if_done();

  Engine& engine_;
  Fabric& fabric_;
  std::mutex mutex_;  // of the cores, while they run
  const Slots slots_;
  const CaptureFormat format_;
  std::unordered_map<const void*, uint32_t> interfaces_;  // of pcapng, by port or link
  std::function<void(const Piece&)> write_;
  std::function<void()> closed_;
  std::vector<Chunk> chunks_;
  std::vector<Chunk*> free_;
  Chunk* current_ = nullptr;
  size_t writing_ = 0;
  uint64_t offset_ = 0;
  bool active_ = false;
  bool holding_ = false;
  Counter packets_;
};

}  // namespace rocefs
