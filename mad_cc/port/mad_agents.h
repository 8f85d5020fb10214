// MadAgents: the registrations of agents at a port, and the agent that gets an unsolicited MAD, by
// the rules of ib_register_mad_agent(). Core thread.
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
    // Ids of the port by the user's request names.
    std::unordered_map<uint64_t, uint64_t> sends;
    // Returns whether the port does RMPP for this agent.
    bool port_rmpp() const { return registration.rmpp_version != 0 && !registration.user_rmpp; }
  };

  // Fails with EINVAL and EBUSY as MadPort::add_agent().
  Result<uint32_t> add(const MadRegistration& registration, MadUser& user);
  void remove(uint32_t id);
  void clear_sends();
  Agent* find(uint32_t id);
  // Returns the receiver, or 0 for none and for a MAD that no port understands. A response goes to
  // the agent in its TID, a request to the agent registered for its class, version, method and OUI.
  uint32_t receiver_of(const mad::Mad& mad) const;
  std::vector<uint32_t> ids() const;

 private:
  std::unordered_map<uint32_t, Agent> agents_;
  std::unordered_map<uint64_t, uint32_t> methods_;  // by method_key()
  uint32_t last_id_ = 0;
};

}  // namespace rocefs
