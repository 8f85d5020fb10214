// Socket to the daemon, which sends the orders.
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

// Waits for a datagram. Empty: the daemon has gone.
std::optional<DaemonDatagram> receive_datagram();
// Waits until the daemon takes it.
void send_datagram(std::string_view text);
// Sends without blocking; true if sent. Any thread.
bool try_send_datagram(std::string_view text);

}  // namespace rocefs
