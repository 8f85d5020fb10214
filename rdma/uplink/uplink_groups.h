// UplinkGroups: the multicast groups that ports behind an uplink receive from the machine's
// network: a socket for each, bound to the group's UDP port 4791, which is a member (IGMP, MLD) on
// the interface of every own address that wants the group.
//
// Control thread.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/base/fd.h"
#include "core/base/limited_log.h"
#include "rdma/wire/ip.h"

namespace rocefs {

class UplinkGroups {
 public:
  // Sockets, at most: programs of any user join groups.
  static constexpr size_t kMaxGroups = 256;
  struct Parts {
    // Called when a group's socket is there: receive from it.
    std::function<void(const Ip& group, Fd socket)> bound;
    // Called when nobody wants the group any more.
    std::function<void(const Ip& group)> unbound;
    std::function<void(const std::string&)> warn;
  };
  explicit UplinkGroups(Parts parts)
      : parts_(std::move(parts)),
        warnings_([this](std::string_view line) { parts_.warn(std::string(line)); },
                  "groups that stay inside") {}

  // Whether the device with this own address of the machine wants the group. A group that cannot be
  // joined stays inside, and the reason is told.
  void set_member(const Ip& own, const Ip& group, bool wanted);
  // Interfaces have changed: joins where an address has another interface now, and what could not
  // be joined before.
  void renew();
  // Reception has ended; renew() tries again.
  void lost(const Ip& group);

 private:
  struct Group {
    Fd socket;
    std::map<Ip, unsigned> members;  // own address, and index of the interface; 0: not joined
  };

  void join(const Ip& ip, Group& group, const Ip& own);
  void leave(const Ip& ip, Group& group, const Ip& own);

  const Parts parts_;
  std::map<Ip, Group> groups_;
  LimitedLog warnings_;
};

}  // namespace rocefs
