// CmCounters: messages of a port by kind, as ib_cm counts them (drivers/infiniband/core/cm.c).
#pragma once

#include <array>

#include "core/base/counter.h"
#include "rdma/cm/message.h"

namespace rocefs {

struct CmCounters {
  using ByMessage = std::array<Counter, cm::kMessages>;
  ByMessage transmitted, retried, received, duplicates;

  void reset() {
    for (ByMessage* kind : {&transmitted, &retried, &received, &duplicates}) {
      for (Counter& counter : *kind) counter.set(0);
    }
  }
};

}  // namespace rocefs
