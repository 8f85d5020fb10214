// UDP sockets of an uplink. RoCEv2 spreads flows by their UDP source port, and a socket sends from
// the port that it is bound to: one socket for each port in use. They are unconnected and forbid
// fragments, because Linux then sends the IP ID 0, which the ICRC covers.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
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

// kReceiveGroup: at the address of a multicast group, which others may receive at too.
enum class UdpUse { kSend, kReceive, kReceiveGroup };
// Binds a socket to `address`. EADDRNOTAVAIL: not an address of this network namespace; EADDRINUSE:
// the port is taken.
Result<Fd> open_udp(const UdpAddress& address, UdpUse use);
// Whether a receiving socket merges datagrams of one size (UDP_GRO).
void take_batches(int fd, bool wanted);

class UdpBatch;

// A sending socket.
struct UdpSocket {
  UdpAddress address;
  Fd fd;
  int error = 0;
  TimeNs retry_at = 0;
  SendRoom room;
  // Traffic class of datagrams without ancillary data: that of the first one, which most share.
  // Ancillary data costs more.
  std::optional<uint8_t> traffic_class;
  // Set by the user: messages in progress; the socket is not closed meanwhile.
  size_t under_way = 0;
  UdpBatch* batch = nullptr;  // batch that packets may join

  // Before the first send. If the kernel refuses, every datagram carries ancillary data.
  void set_traffic_class(uint8_t value);
};

// Sending sockets, opened when first needed; beyond `most`, the idle one used least recently is
// closed. Single-threaded.
class UdpSockets {
 public:
  // `crowded` is called once, with the reason, when a socket has been closed to make room.
  UdpSockets(size_t most, std::function<void(const std::string&)> crowded);

  // The number that this process's limit of open files leaves room for; at most one for each source
  // port of RoCEv2.
  static size_t most_allowed();
  // Finds the socket that sends from `from`; or a negative errno, which stands for a second.
  // -EBUSY: all sockets have messages in progress; finish one first.
  int find(const UdpAddress& from, TimeNs now);
  // The socket of the last find(); valid until the next call, or while it has messages in progress.
  UdpSocket& found() { return sockets_.front(); }
  // Whether UDP checksums are sent. Without them the kernel does not segment datagrams
  // (UDP_SEGMENT). All messages in progress must be with the kernel.
  void set_checksums(bool wanted);
  // Interface of an own IPv6 address, by which it sends to groups; for IPv4 the kernel knows.
  void set_interface(const Ip& own, unsigned index);
  size_t open() const { return open_; }

 private:
  using Sockets = std::list<UdpSocket>;  // the last used first

  int use(Sockets::iterator at, TimeNs now);
  void open(UdpSocket& socket, TimeNs now);
  bool forget_oldest(bool open);

  const size_t most_;
  std::function<void(const std::string&)> crowded_;  // null once called
  Sockets sockets_;
  std::unordered_map<UdpAddress, Sockets::iterator, UdpAddressHash> places_;
  std::map<Ip, unsigned> interfaces_;
  size_t open_ = 0;
  bool checksums_ = false;
};

}  // namespace rocefs
