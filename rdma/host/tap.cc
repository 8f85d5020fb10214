#include "rdma/host/tap.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstring>

namespace rocefs {
namespace {

// Asks for cached attributes alone: a file of a FUSE file system could let fstat(2) wait. A special
// file that is open belongs to its driver, whatever file system shows it.
bool is_tun(int fd) {
  constexpr unsigned kMajor = 10, kMinor = 200;  // /dev/net/tun
  struct statx status {};
  int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && !(flags & O_PATH) &&
         ::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) == 0 &&
         S_ISCHR(status.stx_mode) && status.stx_rdev_major == kMajor &&
         status.stx_rdev_minor == kMinor;
}

Result<void> set_up(int fd, const std::string& interface) {
  ifreq request{};
  if (::ioctl(fd, TUNGETIFF, &request) != 0) return Error{EINVAL, "the device has no interface"};
  constexpr int kWanted = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  if ((request.ifr_flags & kWanted) != kWanted || (request.ifr_flags & IFF_TUN)) {
    return Error{EINVAL, "the device is no TAP with IFF_NO_PI and IFF_VNET_HDR"};
  }
  if (interface != request.ifr_name) {
    return errorf(EINVAL, "the device is {}, not {}", request.ifr_name, interface);
  }
  constexpr unsigned kOffloads = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6;
  if (::ioctl(fd, TUNSETOFFLOAD, kOffloads) != 0) {
    return errorf(errno, "{}: no offloads: {}", interface, std::strerror(errno));
  }
  // Without a change the kernel would show its operational state as unknown for ever.
  int carrier = 0;
  (void)::ioctl(fd, TUNSETCARRIER, &carrier);
  return {};
}

}  // namespace

Result<std::shared_ptr<Tap>> Tap::of(StrangerFd fd, Worker& worker) {
  if (!fd || !is_tun(fd.get())) return Error{EINVAL, "a TAP device is wanted"};
  return std::shared_ptr<Tap>(new Tap(std::move(fd), worker));
}

void Tap::set_carrier(bool carrier) const {
  worker_.post([self = shared_from_this(), carrier] {
    int value = carrier;
    (void)::ioctl(self->descriptor(), TUNSETCARRIER, &value);
  });
}

void Tap::prepare(const std::string& interface, UniqueFunction<void(Result<void>)> done) const {
  worker_.post([self = shared_from_this(), interface, done = std::move(done)]() mutable {
    done(set_up(self->descriptor(), interface));
  });
}

}  // namespace rocefs
