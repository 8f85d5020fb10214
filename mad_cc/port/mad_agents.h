// MadAgents: who is registered at a port for what, and for whom an unsolicited MAD is: the rules of
// ib_register_mad_agent(). Core thread.
#pragma once

#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "mad_cc/port/mad_user.h"

namespace rocefs {

class MadAgents {
 public:
  struct Agent {
    MadRegistration registration;
    MadUser* user;
    // The user's name for each of its sends, and the port's.
    std::unordered_map<uint64_t, uint64_t> sends;
    // RMPP is the port's affair.
    bool port_rmpp() const { return registration.rmpp_version != 0 && !registration.user_rmpp; }
  };

  // EINVAL and EBUSY as MadPort::add_agent().
  Result<uint32_t> add(const MadRegistration& registration, MadUser& user);
  void remove(uint32_t id);
  void clear_sends();
  Agent* find(uint32_t id);
  // 0: nobody. A response goes to whose TID it has, a request to who asked for its class, version
  // and method, and OUI. 0 as well for what no port understands.
  uint32_t receiver_of(const mad::Mad& mad) const;
  std::vector<uint32_t> ids() const;

 private:
  std::unordered_map<uint32_t, Agent> agents_;
  std::unordered_map<uint64_t, uint32_t> methods_;  // by method_key()
  uint32_t last_id_ = 0;
};

}  // namespace rocefs
