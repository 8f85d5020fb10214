// The socket to the daemon, from which orders come.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/fd.h"

namespace rocefs {

struct DaemonDatagram {
  std::string text;
  static constexpr size_t kDescriptors = 2;
  Fd descriptors[kDescriptors];
};

// Waits for one. Nothing: the daemon has gone.
std::optional<DaemonDatagram> receive_datagram();
// Waits until the daemon takes it.
void send_datagram(std::string_view text);
// At once or not at all: whether it was sent. Any thread.
bool try_send_datagram(std::string_view text);

}  // namespace rocefs
