// CoreExchange: what the part of a packet core sends to others, and takes from them.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/loop/packet_core.h"
#include "rdma/fabric/core_crossings.h"

namespace rocefs {

// The core's thread, but where said otherwise.
class CoreExchange final : public CoreWork {
 public:
  // `pool`: the packets of the core. `stale` counts packets whose payload has gone.
  CoreExchange(PacketCore& core, PacketPool& pool, Counter& stale);
  CoreExchange(const CoreExchange&) = delete;
  CoreExchange& operator=(const CoreExchange&) = delete;

  // Before the engine starts: the way to another core, whose exchange outlives the engine's run.
  Crossings& way_to(CoreExchange& other);

  void enter() override { PacketPool::use_here(&pool_); }
  void leave() override { PacketPool::use_here(nullptr); }
  bool take() override;
  bool has_more() const override;
  TimeNs first_left() const override;
  // Alone: drops all that is on its way from here.
  void reset();

 private:
  struct Way {
    CoreExchange* to;
    std::unique_ptr<CoreCrossings> crossings;
  };

  PacketCore& core_;
  PacketPool& pool_;
  Counter& stale_;
  std::vector<Way> ways_;             // from here
  std::vector<CoreCrossings*> here_;  // ways from others
  size_t first_ = 0;                  // of these: the first to take from
};

}  // namespace rocefs
