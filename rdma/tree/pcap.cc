#include "rdma/tree/pcap.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "rdma/nic/device.h"
#include "rdma/packet/ethernet_frame.h"

namespace rocefs {
namespace {

// The pcap file format, in host byte order as its magic tells.
struct FileHeader {
  uint32_t magic = 0xa1b23c4d;  // nanoseconds
  uint16_t major = 2, minor = 4;
  uint32_t zone = 0, accuracy = 0;
  uint32_t snap_length = 65535;
  uint32_t link_type = 1;  // Ethernet
};
struct RecordHeader {
  uint32_t seconds, nanoseconds, captured, original;
};

// Blocks of pcapng (draft-ietf-opsawg-pcapng), in host byte order; each ends with its length.
struct SectionHeader {
  uint32_t type = 0x0a0d0d0a, length = sizeof(SectionHeader);
  uint32_t magic = 0x1a2b3c4d;
  uint16_t major = 1, minor = 0;
  uint32_t section_length[2] = {0xffffffff, 0xffffffff};  // not known
  uint32_t length_again = sizeof(SectionHeader);
};
struct InterfaceHeader {
  uint32_t type = 1, length = 0;
  uint16_t link_type = 1, reserved = 0;  // Ethernet
  uint32_t snap_length = 65535;
};
struct Option {
  uint16_t code, length;
};
constexpr uint16_t kInterfaceName = 2, kTimeResolution = 9;
struct PacketHeader {
  uint32_t type = 6, length = 0, interface = 0;
  uint32_t time_high = 0, time_low = 0;
  uint32_t captured = 0, original = 0;
};
constexpr uint32_t padded(size_t length) {
  return static_cast<uint32_t>((length + 3) / 4 * 4);
}
constexpr uint8_t kZeros[4] = {};

// The far MAC of a routed packet is unknown: derives a locally administered one from its address.
std::array<uint8_t, kEthernetHeader> ethernet_header(const Port& from, const Packet& packet) {
  if (packet.ethernet) {
    std::array<uint8_t, kEthernetHeader> header;
    std::copy_n(packet.frame->ethernet.begin(), kEthernetHeader, header.begin());
    return header;
  }
  const uint8_t* ip = packet.header.data();
  bool ipv6 = ip[0] >> 4 == 6;
  const uint8_t* last4 = ipv6 ? ip + 36 : ip + 16;
  std::array<uint8_t, kEthernetHeader> header{0x02, 0x00, last4[0], last4[1], last4[2], last4[3]};
  std::memcpy(header.data() + 6, from.spec().mac.data(), 6);
  header[12] = ipv6 ? 0x86 : 0x08;
  header[13] = ipv6 ? 0xdd : 0x00;
  return header;
}

// Octets behind the Ethernet header. A short frame is captured without padding, as by the host that
// sends it.
size_t length_of(const Packet& packet) {
  return packet.ethernet ? ethernet_length(packet) : packet.wire_length();
}

}  // namespace

PcapCapture::PcapCapture(Engine& engine, Fabric& fabric, Slots slots, CaptureFormat format,
                         std::function<void(const Piece&)> write)
    : engine_(engine),
      fabric_(fabric),
      slots_(std::move(slots)),
      format_(format),
      write_(std::move(write)) {
  for (size_t i = 0; i < slots_.count; ++i) chunks_.push_back({slots_.first + i * slots_.size});
  for (Chunk& chunk : chunks_) free_.push_back(&chunk);
}

void PcapCapture::start() {
  current_ = free_.back();
  free_.pop_back();
  if (format_ == CaptureFormat::kPcapng) {
    begin_section();
  } else {
    FileHeader header;
    append(&header, sizeof header);
  }
  active_ = true;
  fabric_.set_capture(this);
}

void PcapCapture::append(const void* data, size_t size) {
  std::memcpy(current_->bytes + current_->size, data, size);
  current_->size += size;
}

void PcapCapture::begin_section() {
  SectionHeader section;
  append(&section, sizeof section);
  for (const auto& device : fabric_.devices()) {
    for (unsigned number = 1; number <= device->port_count(); ++number) {
      const Port& port = device->port(number);
      interfaces_.emplace(&port, static_cast<uint32_t>(interfaces_.size()));
      append_interface(PortName{device->name(), number}.text());
    }
  }
}

// Writes the port's name, and nanoseconds as the unit of time.
void PcapCapture::append_interface(const std::string& name) {
  InterfaceHeader header;
  const Option options[] = {
      {kInterfaceName, static_cast<uint16_t>(name.size())}, {kTimeResolution, 1}, {0, 0}};
  constexpr uint8_t kNanoseconds[4] = {9};
  header.length = static_cast<uint32_t>(sizeof header + sizeof options + padded(name.size()) +
                                        sizeof kNanoseconds + sizeof header.length);
  append(&header, sizeof header);
  append(&options[0], sizeof(Option));
  append(name.data(), name.size());
  append(kZeros, padded(name.size()) - name.size());
  append(&options[1], sizeof(Option));
  append(kNanoseconds, sizeof kNanoseconds);
  append(&options[2], sizeof(Option));
  append(&header.length, sizeof header.length);
}

void PcapCapture::append_frame(const Port& from, const Packet& packet) {
  std::array<uint8_t, kEthernetHeader> ethernet = ethernet_header(from, packet);
  append(ethernet.data(), ethernet.size());
  append(packet.header.data(), packet.header_len);
  append(packet.frame->bytes.data(), length_of(packet) - packet.header_len);
}

void PcapCapture::captured(const Port& from, const Packet& packet, TimeNs now) {
  assert(room());
  auto length = static_cast<uint32_t>(kEthernetHeader + length_of(packet));
  if (format_ == CaptureFormat::kPcapng) {
    PacketHeader header;
    header.length = static_cast<uint32_t>(sizeof header + padded(length) + sizeof header.length);
    header.interface = interfaces_.at(&from);
    header.time_high = static_cast<uint32_t>(static_cast<uint64_t>(now) >> 32);
    header.time_low = static_cast<uint32_t>(now);
    header.captured = header.original = length;
    append(&header, sizeof header);
    append_frame(from, packet);
    append(kZeros, padded(length) - length);
    append(&header.length, sizeof header.length);
  } else {
    RecordHeader record{static_cast<uint32_t>(now / kSecond), static_cast<uint32_t>(now % kSecond),
                        length, length};
    append(&record, sizeof record);
    append_frame(from, packet);
  }
  packets_.add();
  if (!room()) flush();
}

// Hands the current chunk over and takes a free one; without one, holds the engine.
void PcapCapture::flush() {
  Chunk* full = std::exchange(current_, nullptr);
  full->offset = offset_;
  offset_ += full->size;
  ++writing_;
  submit(full);
  if (free_.empty()) return set_holding(true);
  current_ = free_.back();
  free_.pop_back();
}

void PcapCapture::submit(const Chunk* chunk) {
  auto slot = static_cast<size_t>(chunk - chunks_.data());
  write_({slot, chunk->offset, chunk->written, chunk->size - chunk->written});
}

void PcapCapture::written(size_t slot, uint64_t size) {
  Chunk* chunk = &chunks_[slot];
  if (size > 0) {
    chunk->written += size;
    if (chunk->written < chunk->size) return submit(chunk);
  } else if (active_) {
    active_ = false;
    fabric_.set_capture(nullptr);
  }
  chunk->size = 0;
  chunk->written = 0;
  --writing_;
  free_.push_back(chunk);
  if (!current_) {
    current_ = free_.back();
    free_.pop_back();
  }
  set_holding(false);
  close_if_done();
}

void PcapCapture::set_holding(bool holding) {
  if (holding == holding_) return;
  holding_ = holding;
  if (holding) {
    engine_.hold();
  } else {
    engine_.release();
  }
}

void PcapCapture::stop(std::function<void()> closed) {
  if (active_) fabric_.set_capture(nullptr);
  active_ = false;
  closed_ = std::move(closed);
  if (current_ && current_->size > 0) flush();
  set_holding(false);
  close_if_done();
}

void PcapCapture::close_if_done() {
  if (!closed_ || writing_ > 0) return;
  std::exchange(closed_, nullptr)();
}

}  // namespace rocefs
