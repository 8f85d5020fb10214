// UDP sockets of an uplink. RoCEv2 spreads flows by their UDP source port, and only a socket that
// is bound to it sends from a port: one for each that is in use. They are not connected and forbid
// fragments, because Linux then sends the IP ID 0, which the ICRC covers.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "rdma/packet/datagram.h"
#include "rdma/uplink/send_room.h"
#include "rdma/uplink/socket_address.h"

namespace rocefs {

enum class UdpUse { kSend, kReceive };
// Bound to `address`. EADDRNOTAVAIL: it is none of this network namespace; EADDRINUSE: somebody has
// the port.
Result<Fd> open_udp(const UdpAddress& address, UdpUse use);
// Whether one that receives takes several datagrams of one size as one (UDP_GRO).
void take_batches(int fd, bool wanted);

class UdpBatch;

// One to send from.
struct UdpSocket {
  UdpAddress address;
  Fd fd;
  int error = 0;
  TimeNs retry_at = 0;
  SendRoom room;
  // Of what says no other: that of the first, which most share. To say one costs more.
  std::optional<uint8_t> traffic_class;
  // By its user: what the kernel has yet to do with it; it is not closed meanwhile.
  size_t under_way = 0;
  UdpBatch* batch = nullptr;  // which more packets may join

  // Before anything is sent from it. Where the kernel refuses, every datagram says its own.
  void set_traffic_class(uint8_t value);
};

// The sockets to send from, opened when first asked for; at most so many, of those with nothing
// under way the one used least recently is closed. One thread.
class UdpSockets {
 public:
  // `crowded` is told once, with the reason, that one has been closed to make room.
  UdpSockets(size_t most, std::function<void(const std::string&)> crowded);

  // As many as this process's limit of open files leaves room for; at most one for each source port
  // that RoCEv2 has.
  static size_t most_allowed();
  // The socket that sends from `from`; or a negative errno, which stands for a second. -EBUSY: all
  // that there may be have something under way, and one of them is wanted first.
  int find(const UdpAddress& from, TimeNs now);
  // That which find() has given last; until the next call, or while it has something under way.
  UdpSocket& found() { return sockets_.front(); }
  // Whether UDP's checksum is sent along. Without it the kernel cuts no datagrams (UDP_SEGMENT).
  // What is being sent must be with the kernel.
  void set_checksums(bool wanted);
  size_t open() const { return open_; }

 private:
  using Sockets = std::list<UdpSocket>;  // the one used last is first

  int use(Sockets::iterator at, TimeNs now);
  void open(UdpSocket& socket, TimeNs now);
  bool forget_oldest(bool open);

  const size_t most_;
  std::function<void(const std::string&)> crowded_;  // until it has been told
  Sockets sockets_;
  std::unordered_map<UdpAddress, Sockets::iterator, UdpAddressHash> places_;
  size_t open_ = 0;
  bool checksums_ = false;
};

}  // namespace rocefs
