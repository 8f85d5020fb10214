#include "rdma/pcap.h"

#include <cassert>
#include <cstring>

#include "rdma/device.h"

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

constexpr size_t kEthernetHeader = 14;

// The far MAC is not known to a routed packet: a locally administered one made of its address.
std::array<uint8_t, kEthernetHeader> ethernet_header(const Port& from, const Packet& packet) {
  const uint8_t* ip = packet.header.data();
  bool ipv6 = ip[0] >> 4 == 6;
  const uint8_t* last4 = ipv6 ? ip + 36 : ip + 16;
  std::array<uint8_t, kEthernetHeader> header{0x02, 0x00, last4[0], last4[1], last4[2], last4[3]};
  std::memcpy(header.data() + 6, from.spec().mac.data(), 6);
  header[12] = ipv6 ? 0x86 : 0x08;
  header[13] = ipv6 ? 0xdd : 0x00;
  return header;
}

}  // namespace

PcapCapture::PcapCapture(Engine& engine, Fabric& fabric, Fd file, std::function<void(int)> failed)
    : engine_(engine), fabric_(fabric), file_(std::move(file)), failed_(std::move(failed)) {
  for (Chunk& chunk : chunks_) {
    chunk.bytes.reserve(kChunk);
    free_.push_back(&chunk);
  }
}

PcapCapture::~PcapCapture() {
  assert(writing_ == 0);
}

void PcapCapture::start() {
  current_ = free_.back();
  free_.pop_back();
  FileHeader header;
  append(&header, sizeof header);
  active_ = true;
  fabric_.set_capture(this);
}

void PcapCapture::append(const void* data, size_t size) {
  auto* bytes = static_cast<const uint8_t*>(data);
  current_->bytes.insert(current_->bytes.end(), bytes, bytes + size);
}

void PcapCapture::captured(const Port& from, const Packet& packet, TimeNs now) {
  assert(current_ && current_->bytes.size() + kLargestRecord <= kChunk);
  std::array<uint8_t, kEthernetHeader> ethernet = ethernet_header(from, packet);
  auto length = static_cast<uint32_t>(ethernet.size() + packet.wire_length());
  RecordHeader record{static_cast<uint32_t>(now / kSecond), static_cast<uint32_t>(now % kSecond),
                      length, length};
  append(&record, sizeof record);
  append(ethernet.data(), ethernet.size());
  append(packet.header.data(), packet.header_len);
  append(packet.frame->bytes.data(), packet.wire_length() - packet.header_len);
  packets_.add();
  if (current_->bytes.size() + kLargestRecord > kChunk) flush();
}

// Hands the current chunk to the disk and takes a free one; without one, time stands.
void PcapCapture::flush() {
  Chunk* full = std::exchange(current_, nullptr);
  full->offset = offset_;
  offset_ += full->bytes.size();
  ++writing_;
  submit(full);
  if (free_.empty()) return set_holding(true);
  current_ = free_.back();
  free_.pop_back();
}

void PcapCapture::submit(Chunk* chunk) {
  engine_.ring().write(file_.get(), chunk->bytes.data() + chunk->written,
                       chunk->bytes.size() - chunk->written, chunk->offset + chunk->written,
                       [this, chunk](int result) { written(chunk, result); });
}

void PcapCapture::written(Chunk* chunk, int result) {
  if (result > 0) {
    chunk->written += static_cast<size_t>(result);
    if (chunk->written < chunk->bytes.size()) return submit(chunk);
  } else if (active_) {
    active_ = false;
    fabric_.set_capture(nullptr);
    failed_(result == 0 ? EIO : -result);
  }
  chunk->bytes.clear();
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
  if (current_ && !current_->bytes.empty()) flush();
  set_holding(false);
  close_if_done();
}

void PcapCapture::close_if_done() {
  if (!closed_ || writing_ > 0) return;
  file_.reset();
  std::exchange(closed_, nullptr)();
}

}  // namespace rocefs
