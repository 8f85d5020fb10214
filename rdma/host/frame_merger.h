// FrameMerger: makes what a host's kernel is given out of frames of the wire: neighbouring segments
// of one TCP connection as one frame of up to 64 KiB, as a NIC that coalesces them, all else as it
// came (OffloadHeader).
#pragma once

#include <sys/uio.h>

#include <vector>

#include "rdma/host/frame_splitter.h"
#include "rdma/packet/packet.h"

namespace rocefs {

// One writev(2) of a TAP device. Not movable while `parts` are in use.
struct Delivery {
  OffloadHeader offload;
  std::vector<PacketPtr> frames;
  std::vector<iovec> parts;
};

// Takes frames from `waiting`, from the front on, into an empty delivery: at least one, if there is
// one. The order of frames is kept.
void merge_frames(PacketFifo& waiting, Delivery& out);

}  // namespace rocefs
