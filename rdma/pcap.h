// PcapCapture: writes what NIC ports transmit to a pcap or pcapng file (nanosecond time stamps,
// Ethernet; pcapng with an interface for each port), through the core's io_uring. Nothing is
// dropped: while the disk is behind, engine time stands.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/counter.h"
#include "core/engine.h"
#include "core/fd.h"
#include "rdma/fabric.h"

namespace rocefs {

enum class CaptureFormat : uint8_t { kPcap, kPcapng };

// On the core's thread, but for packets().
class PcapCapture final : public CaptureSink {
 public:
  // `failed` runs once if a write fails; the capture takes no more packets then.
  PcapCapture(Engine& engine, Fabric& fabric, Fd file, CaptureFormat format,
              std::function<void(int code)> failed);
  ~PcapCapture() override;

  void start();
  // Takes no more packets; `closed` runs when every byte is written and the file is closed.
  void stop(std::function<void()> closed);
  void captured(const Port& from, const Packet& packet, TimeNs now) override;

  // Any thread.
  uint64_t packets() const { return packets_.get(); }

 private:
  static constexpr size_t kChunk = 1 << 20;
  static constexpr size_t kChunks = 8;
  static constexpr size_t kLargestRecord = 8192;

  struct Chunk {
    std::vector<uint8_t> bytes;
    size_t written = 0;
    uint64_t offset = 0;
  };

  void append(const void* data, size_t size);
  void begin_section();
  void append_interface(const std::string& name);
  void append_frame(const Port& from, const Packet& packet);
  void flush();
  void submit(Chunk* chunk);
  void written(Chunk* chunk, int result);
  void set_holding(bool holding);
  void close_if_done();

  Engine& engine_;
  Fabric& fabric_;
  Fd file_;
  const CaptureFormat format_;
  std::unordered_map<const Port*, uint32_t> interfaces_;  // pcapng's numbers of them
  std::function<void(int)> failed_;
  std::function<void()> closed_;
  std::array<Chunk, kChunks> chunks_;
  std::vector<Chunk*> free_;
  Chunk* current_ = nullptr;
  size_t writing_ = 0;
  uint64_t offset_ = 0;
  bool active_ = false;
  bool holding_ = false;
  Counter packets_;
};

}  // namespace rocefs
