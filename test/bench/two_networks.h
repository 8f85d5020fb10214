// Two networks joined by a cable, as two containers have them: network namespaces and veth. A
// thread, and what it starts, is in one of them.
#pragma once

#include <memory>

#include "core/base/fd.h"

namespace rocefs::bench {

class TwoNetworks {
 public:
  // MTU 4200; 10.9.0.1, .3 and .11 in the first, 10.9.0.2, .4 and .12 in the second. Null
  // without the privilege: it takes root, if only that of a user namespace.
  static std::unique_ptr<TwoNetworks> make();
  ~TwoNetworks();
  // Moves the calling thread to the network of 10.9.0.`host`, 1 or 2.
  void enter(unsigned host) const;

 private:
  Fd own_, networks_[2];
};

}  // namespace rocefs::bench
