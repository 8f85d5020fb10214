// PcapCapture: writes what NIC ports transmit to a pcap or pcapng file (nanosecond time stamps,
// Ethernet; pcapng with an interface for each port), through whoever has the file. Nothing is
// dropped: while that one is behind, engine time stands.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/counter.h"
#include "core/loop/engine.h"
#include "core/takeover/shared_memory.h"
#include "rdma/network/fabric.h"

namespace rocefs {

enum class CaptureFormat : uint8_t { kPcap, kPcapng };

// On the core's thread, but for packets().
class PcapCapture final : public CaptureSink {
 public:
  // Memory of `count` pieces of the file, `size` octets each, that it shares with who writes them.
  struct Slots {
    std::shared_ptr<const SharedMemory> memory;
    uint8_t* first;
    size_t size, count;
  };
  // `size` octets of a slot, from `skip` on, that go to the file at `offset` + `skip`.
  struct Piece {
    size_t slot;
    uint64_t offset;
    size_t skip, size;
  };
  // `write` is told of each piece, and answers by written().
  PcapCapture(Engine& engine, Fabric& fabric, Slots slots, CaptureFormat format,
              std::function<void(const Piece&)> write);

  void start();
  // `size` octets of what was asked for are in the file: 0 when no more will be, and the capture
  // takes no more packets then.
  void written(size_t slot, uint64_t size);
  // Takes no more packets; `closed` runs when every byte is written.
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

  void append(const void* data, size_t size);
  void begin_section();
  void append_interface(const std::string& name);
  void append_frame(const Port& from, const Packet& packet);
  void flush();
  void submit(const Chunk* chunk);
  bool room() const { return current_ && current_->size + kMaxRecord <= slots_.size; }
  void set_holding(bool holding);
  void close_if_done();

  Engine& engine_;
  Fabric& fabric_;
  const Slots slots_;
  const CaptureFormat format_;
  std::unordered_map<const Port*, uint32_t> interfaces_;  // pcapng's numbers of them
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
