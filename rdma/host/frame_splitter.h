// FrameSplitter: makes the frames of the wire out of what a host's kernel gives its interface: one
// frame, or one of up to 64 KiB that the interface is to split (TCP segmentation), with checksums
// that it is to compute (OffloadHeader).
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "rdma/host/offload_header.h"
#include "rdma/packet/packet.h"

namespace rocefs {

// Splits `bytes`, an OffloadHeader and an Ethernet frame, and gives each frame
// of the wire to `take`. False, with nothing taken, for a malformed one or one that is too long.
bool split_frame(PacketPool& pool, std::span<uint8_t> bytes,
                 const std::function<void(PacketPtr&&)>& take);

}  // namespace rocefs
