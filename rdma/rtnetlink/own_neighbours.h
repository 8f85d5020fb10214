// OwnNeighbours: searches in the network namespace of this process.
//
// Control thread.
#pragma once

#include <optional>

#include "core/base/fd.h"
#include "core/loop/poll_loop.h"
#include "rdma/rtnetlink/neighbour_search.h"

namespace rocefs {

class OwnNeighbours {
 public:
  // The loop outlives it.
  explicit OwnNeighbours(PollLoop& loop);
  ~OwnNeighbours();
  OwnNeighbours(const OwnNeighbours&) = delete;
  OwnNeighbours& operator=(const OwnNeighbours&) = delete;

  // Null where rtnetlink is not available. The socket is opened at the first call.
  NeighbourSearch* search();

 private:
  void receive();

  PollLoop& loop_;
  Fd socket_;
  std::optional<NeighbourSearch> search_;
};

}  // namespace rocefs
