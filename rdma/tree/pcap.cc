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

using Mac = std::array<uint8_t, 6>;
using EthernetHeader = std::array<uint8_t, kEthernetHeader>;

// The far MAC of a routed packet is unknown: derives a locally administered one from its address.
Mac mac_of(const uint8_t* last4) {
  return {0x02, 0x00, last4[0], last4[1], last4[2], last4[3]};
}

// `from`: MAC of the sender; null: derived like the far one.
EthernetHeader ethernet_header(const Mac* from, const Packet& packet) {
  EthernetHeader header{};
  if (packet.ethernet) {
    std::copy_n(packet.frame->ethernet.begin(), kEthernetHeader, header.begin());
    return header;
  }
  const uint8_t* ip = packet.header.data();
  bool ipv6 = ip[0] >> 4 == 6;
  const Mac to = mac_of(ipv6 ? ip + 36 : ip + 16);
  const Mac source = from ? *from : mac_of(ipv6 ? ip + 20 : ip + 12);
  std::copy(to.begin(), to.end(), header.begin());
  std::copy(source.begin(), source.end(), header.begin() + to.size());
  header[12] = ipv6 ? 0x86 : 0x08;
  header[13] = ipv6 ? 0xdd : 0x00;
  return header;
}

// A PFC frame (IEEE 802.1Q, 36.2) without FCS. RESUME has a time of 0.
std::array<uint8_t, kPauseOctets - 4> pfc_frame(uint32_t link, size_t priority, bool pause) {
  std::array<uint8_t, kPauseOctets - 4> frame{0x01, 0x80, 0xc2, 0x00, 0x00, 0x01, 0x02, 0x00};
  for (size_t i = 0; i < 4; ++i) frame[8 + i] = static_cast<uint8_t>(link >> (24 - 8 * i));
  constexpr uint8_t kControl[] = {0x88, 0x08, 0x01, 0x01,
                                  0x00};  // type, opcode, vector's high octet
  std::copy(std::begin(kControl), std::end(kControl), frame.begin() + 12);
  frame[17] = static_cast<uint8_t>(1u << priority);
  if (pause) frame[18 + 2 * priority] = frame[19 + 2 * priority] = 0xff;
  return frame;
}

// Octets behind the headers. A short frame is captured without padding, as by the host that sends
// it.
std::span<const uint8_t> data_of(const Packet& packet) {
  size_t length = packet.ethernet ? ethernet_length(packet) : packet.wire_length();
  return {packet.frame->bytes.data(), length - packet.header_len};
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
  fabric_.capture_by(this);
  set_taps(this);
}

void PcapCapture::set_taps(LinkTap* tap) {
  for (Link* link : fabric_.links()) link->set_tap(tap);
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
      add_interface(&device->port(number), PortName{device->name(), number}.text());
    }
  }
}

uint32_t PcapCapture::add_interface(const void* of, const std::string& name) {
  auto number = static_cast<uint32_t>(interfaces_.size());
  interfaces_.emplace(of, number);
  append_interface(name);
  // One for each port of a large fabric fills more than a chunk.
  if (!room()) flush();
  return number;
}

// A link's interface is written before its first packet.
uint32_t PcapCapture::interface_of(const Link& link) {
  if (format_ != CaptureFormat::kPcapng) return 0;
  auto found = interfaces_.find(&link);
  return found != interfaces_.end() ? found->second : add_interface(&link, link.name());
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

void PcapCapture::record(uint32_t interface, TimeNs at, Parts parts) {
  assert(room());
  uint32_t length = 0;
  for (const auto& part : parts) length += static_cast<uint32_t>(part.size());
  if (format_ == CaptureFormat::kPcapng) {
    PacketHeader header;
    header.length = static_cast<uint32_t>(sizeof header + padded(length) + sizeof header.length);
    header.interface = interface;
    header.time_high = static_cast<uint32_t>(static_cast<uint64_t>(at) >> 32);
    header.time_low = static_cast<uint32_t>(at);
    header.captured = header.original = length;
    append(&header, sizeof header);
    for (const auto& part : parts) append(part.data(), part.size());
    append(kZeros, padded(length) - length);
    append(&header.length, sizeof header.length);
  } else {
    RecordHeader header{static_cast<uint32_t>(at / kSecond), static_cast<uint32_t>(at % kSecond),
                        length, length};
    append(&header, sizeof header);
    for (const auto& part : parts) append(part.data(), part.size());
  }
  packets_.add();
  if (!room()) flush();
}

void PcapCapture::captured(const Port& from, const Packet& packet, TimeNs now) {
  std::lock_guard lock(mutex_);
  uint32_t interface = format_ == CaptureFormat::kPcapng ? interfaces_.at(&from) : 0;
  record(interface, now,
         {ethernet_header(&from.spec().mac, packet), packet.header_bytes(), data_of(packet)});
}

void PcapCapture::transmitted(const Link& link, Packet& packet, TimeNs now) {
  if (!materialize(packet)) return;
  std::lock_guard lock(mutex_);
  record(interface_of(link), now,
         {ethernet_header(nullptr, packet), packet.header_bytes(), data_of(packet)});
}

void PcapCapture::pause_sent(const Link& link, size_t priority, bool pause, TimeNs at) {
  std::lock_guard lock(mutex_);
  record(interface_of(link), at, {pfc_frame(link.id(), priority, pause)});
}

// Hands the current chunk over and takes a free one. When that was the last one the engine is held:
// it has room for what the running event still captures.
void PcapCapture::flush() {
  Chunk* full = std::exchange(current_, nullptr);
  full->offset = offset_;
  offset_ += full->size;
  ++writing_;
  submit(full);
  take_chunk();
}

void PcapCapture::take_chunk() {
  if (!current_ && !free_.empty()) {
    current_ = free_.back();
    free_.pop_back();
  }
  set_holding(active_ && free_.empty());
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
    fabric_.capture_by(nullptr);
    set_taps(nullptr);
  }
  chunk->size = 0;
  chunk->written = 0;
  --writing_;
  free_.push_back(chunk);
  take_chunk();
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
  if (active_) {
    fabric_.capture_by(nullptr);
    set_taps(nullptr);
  }
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
