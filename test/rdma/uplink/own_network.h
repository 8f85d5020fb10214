// A separate network namespace, whose loopback interface has the addresses of the test. Threads
// that start while it exists are in it.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/fd.h"

namespace rocefs::test {

class OwnNetwork {
 public:
  // IPv6 addresses; those of 127.0.0.0/8 exist anyway.
  explicit OwnNetwork(const std::vector<std::string>& addresses = {}, int mtu = 65536)
      : before_(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) {
    ready_ = before_ && ::unshare(CLONE_NEWNET) == 0;
    if (!ready_) return;
    set_mtu(mtu);
    set_up(true);
    Fd v6(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    for (const std::string& address : addresses) {
      in6_ifreq one{};
      REQUIRE(::inet_pton(AF_INET6, address.c_str(), &one.ifr6_addr) == 1);
      one.ifr6_prefixlen = 128;
      one.ifr6_ifindex = static_cast<int>(::if_nametoindex("lo"));
      REQUIRE(::ioctl(v6.get(), SIOCSIFADDR, &one) == 0);
      await(one.ifr6_addr);
    }
  }
  ~OwnNetwork() {
    if (ready_) (void)::setns(before_.get(), CLONE_NEWNET);
  }
  OwnNetwork(const OwnNetwork&) = delete;
  OwnNetwork& operator=(const OwnNetwork&) = delete;

  // False if only root may create one.
  bool ready() const { return ready_; }
  // The loopback interface.
  void set_up(bool up) {
    Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request = loopback();
    request.ifr_flags = up ? IFF_UP | IFF_LOOPBACK | IFF_RUNNING : IFF_LOOPBACK;
    REQUIRE(::ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0);
  }
  void set_mtu(int octets) {
    Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request = loopback();
    request.ifr_mtu = octets;
    REQUIRE(::ioctl(socket.get(), SIOCSIFMTU, &request) == 0);
  }

 private:
  static ifreq loopback() {
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    return request;
  }
  // The kernel makes an address usable a little later.
  static void await(const in6_addr& address) {
    sockaddr_in6 name{};
    name.sin6_family = AF_INET6;
    name.sin6_addr = address;
    bool bound = false;
    for (int tries = 0; !bound && tries < 1000; ++tries) {
      Fd fd(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      bound = ::bind(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) == 0;
      if (!bound) ::poll(nullptr, 0, 2);
    }
    REQUIRE(bound);
  }

  Fd before_;
  bool ready_ = false;
};

}  // namespace rocefs::test
