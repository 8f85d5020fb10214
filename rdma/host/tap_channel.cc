#include "rdma/host/tap_channel.h"

#include "rdma/host/frame_splitter.h"
#include "rdma/packet/ethernet_frame.h"

namespace rocefs {

TapChannel::TapChannel(PacketCore& core, Port& port, std::shared_ptr<Tap> tap)
    : core_(core),
      port_(port),
      pool_(port.host().pool()),
      counters_(port.interface_counters()),
      tap_(std::move(tap)) {
  for (Read& read : reads_) read.owner = this;
  write_.owner = this;
}

void TapChannel::start() {
  port_.plug(this);
  read_on();
}

void TapChannel::end() {
  ending_ = true;
  port_.plug(nullptr);
  drop_packets();
  if (reading_ > 0) core_.io().cancel(reads_[0]);
  settle();
}

void TapChannel::drop_packets() {
  for (PacketFifo& fifo : to_cable_) fifo.clear();
  queued_ = gathered_ = 0;
  waiting_ = 0;
  to_host_.clear();
}

void TapChannel::abandon() {
  drop_packets();
  write_.delivery.frames.clear();
}

// CoreIo destroys the channel when nothing is under way.
void TapChannel::settle() {
  if (ending_ && reading_ == 0 && !writing_) core_.io().release(*this);
}

void TapChannel::carrier_changed(bool carrier) {
  tap_->set_carrier(carrier);
}

// One read waits for a frame; when it has come, several take what else there is.
void TapChannel::read_on() {
  if (ending_ || reading_ > 0 || full()) return;
  size_t count = drained_ ? 1 : kReads;
  CoreIo::Wait wait = drained_ ? CoreIo::Wait::kForData : CoreIo::Wait::kAtOnce;
  for (; reading_ < count; ++reading_) {
    Read& read = reads_[reading_];
    read.buffer.resize(kMaxFrame);
    core_.io().read(tap_->descriptor(), read.buffer, wait, read);
  }
}

void TapChannel::read_done(const Read& read, int result) {
  --reading_;
  if (ending_) return settle();
  drained_ = result < 0;
  if (result > 0) {
    core_.listen();
    auto size = static_cast<size_t>(result);
    auto* bytes = const_cast<uint8_t*>(read.buffer.data());
    bool good =
        split_frame(pool_, {bytes, size}, [this](PacketPtr&& frame) { queue(std::move(frame)); });
    if (!good) counters_.tx_errors.add();
  }
  read_on();
}

void TapChannel::queue(PacketPtr&& frame) {
  if (!port_.interface_up()) {
    counters_.tx_errors.add();
    return counters_.tx_carrier_errors.add();
  }
  counters_.tx_packets.add();
  counters_.tx_bytes.add(kEthernetHeader + ethernet_length(*frame));
  size_t priority = priority_of(*frame);
  to_cable_[priority].push(std::move(frame));
  ++queued_;
  waiting_ |= static_cast<uint8_t>(1u << priority);
  port_.kick();
}

PacketPtr TapChannel::pull(size_t priority) {
  PacketPtr frame = to_cable_[priority].pop();
  --queued_;
  if (to_cable_[priority].empty()) waiting_ &= static_cast<uint8_t>(~(1u << priority));
  if (reading_ == 0 && queued_ <= kMaxQueued / 2) read_on();
  return frame;
}

void TapChannel::receive(PacketPtr&& frame) {
  if (!frame->intact) {
    counters_.rx_errors.add();
    return counters_.rx_crc_errors.add();
  }
  if (gathered_ >= kMaxGathered) return counters_.rx_dropped.add();
  counters_.rx_packets.add();
  counters_.rx_bytes.add(kEthernetHeader + ethernet_length(*frame));
  if (is_group_frame(*frame)) counters_.multicast.add();
  ++gathered_;
  to_host_.push(std::move(frame));
  if (!writing_) write_gathered();
}

void TapChannel::write_gathered() {
  Delivery& next = write_.delivery;
  next.frames.clear();
  next.parts.clear();
  merge_frames(to_host_, next);
  if (next.frames.empty()) return;
  gathered_ -= next.frames.size();
  writing_ = true;
  core_.io().write(tap_->descriptor(), next.parts, write_);
}

// EIO: the host has set its interface down.
void TapChannel::written(int result) {
  writing_ = false;
  if (result < 0) counters_.rx_dropped.add(write_.delivery.frames.size());
  if (result > 0) core_.listen();
  write_.delivery.frames.clear();
  if (ending_) return settle();
  write_gathered();
}

}  // namespace rocefs
