// Frames that a host's kernel gives its interface: an offload header and an Ethernet frame, split
// and merged again.
#include <algorithm>
#include <vector>

#include "rdma/host/frame_merger.h"
#include "rdma/host/frame_splitter.h"
#include "rdma/packet/ethernet_frame.h"
#include "test/fuzz/fuzz.h"

using namespace rocefs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Outstanding outstanding;
  PacketPool pool(outstanding);
  PacketFifo waiting;
  std::vector<uint8_t> bytes(data, data + size);
  size_t frames = 0;
  bool good = split_frame(pool, bytes, [&](PacketPtr&& packet) {
    fuzz::require(ethernet_length(*packet) <= kMaxEthernetData);
    waiting.push(std::move(packet));
    ++frames;
  });
  fuzz::require(good == (frames > 0));
  size_t delivered = 0;
  while (!waiting.empty()) {
    Delivery delivery;
    merge_frames(waiting, delivery);
    fuzz::require(!delivery.frames.empty());
    delivered += delivery.frames.size();
    size_t octets = 0;
    for (const iovec& part : delivery.parts) {
      // Every octet is read: the sanitizer knows what may be.
      auto* at = static_cast<const uint8_t*>(part.iov_base);
      octets += static_cast<size_t>(std::count(at, at + part.iov_len, 0)) * 0 + part.iov_len;
    }
    fuzz::require(octets >= sizeof(OffloadHeader) + kEthernetHeader);
  }
  fuzz::require(delivered == frames);
  return 0;
}
