#include "mad_cc/port/mad_agents.h"

#include <cerrno>

#include "mad_cc/mad/rmpp.h"

namespace rocefs {

using namespace mad;

namespace {

constexpr uint8_t kBaseVersion = 1;
constexpr uint8_t kMaxVersion = 0x83, kMaxClass = 0x50;  // MAX_MGMT_VERSION, MAX_MGMT_CLASS
constexpr uint32_t kMaxId = 0xffffff;  // the kernel leaves the TID's top octet to drivers

uint64_t method_key(uint8_t mgmt_class, uint8_t version, uint32_t oui, uint8_t method) {
  return uint64_t{oui} << 24 | uint64_t{mgmt_class} << 16 | uint64_t{version} << 8 | method;
}
uint64_t method_key(const MadRegistration& r, size_t method) {
  return method_key(r.mgmt_class, r.class_version, is_vendor2(r.mgmt_class) ? r.oui : 0,
                    static_cast<uint8_t>(method));
}

Result<void> check(const MadRegistration& r) {
  if (r.qpn > 1) return errorf(EINVAL, "QP {}: MADs use QP 0 or 1", r.qpn);
  if (r.rmpp_version != 0 && r.rmpp_version != kRmppVersion)
    return errorf(EINVAL, "RMPP version {} is not 0 or 1", r.rmpp_version);
  if (r.mgmt_class == 0) {
    if (r.methods.any()) return Error{EINVAL, "class 0 has no methods"};
    if (r.user_rmpp) return Error{EINVAL, "class 0 has no user RMPP"};
    return {};
  }
  if (r.class_version >= kMaxVersion)
    return errorf(EINVAL, "class version {:#x} is above {:#x}", r.class_version, kMaxVersion - 1);
  if (r.mgmt_class >= kMaxClass && r.mgmt_class != kSubnDirected)
    return errorf(EINVAL, "no such class: {:#x}", r.mgmt_class);
  if (is_vendor2(r.mgmt_class) && r.oui == 0)
    return errorf(EINVAL, "class {:#x} needs an OUI", r.mgmt_class);
  if (r.oui > 0xffffff) return errorf(EINVAL, "OUI {:#x} is above 0xffffff", r.oui);
  if (r.rmpp_version != 0 && !has_rmpp(r.mgmt_class))
    return errorf(EINVAL, "class {:#x} has no RMPP", r.mgmt_class);
  if (is_smp(r.mgmt_class) != (r.qpn == 0))
    return errorf(EINVAL, "class {:#x} does not use QP {}", r.mgmt_class, r.qpn);
  return {};
}

}  // namespace

Result<uint32_t> MadAgents::add(const MadRegistration& registration, MadUser& user) {
  if (Result<void> checked = check(registration); !checked) return checked.error();
  for (size_t method = 0; method < registration.methods.size(); ++method) {
    if (registration.methods[method] && methods_.contains(method_key(registration, method)))
      return errorf(EBUSY, "method {:#x} of class {:#x} already has an agent", method,
                    registration.mgmt_class);
  }
  if (agents_.size() >= kMaxId / 2) return Error{ENOSPC, "too many agents"};
  do {
    last_id_ = last_id_ % kMaxId + 1;
  } while (agents_.contains(last_id_));
  agents_[last_id_] = Agent{registration, &user, {}};
  for (size_t method = 0; method < registration.methods.size(); ++method) {
    if (registration.methods[method]) methods_[method_key(registration, method)] = last_id_;
  }
  return last_id_;
}

void MadAgents::remove(uint32_t id) {
  Agent* agent = find(id);
  if (!agent) return;
  for (size_t method = 0; method < agent->registration.methods.size(); ++method) {
    if (agent->registration.methods[method])
      methods_.erase(method_key(agent->registration, method));
  }
  agents_.erase(id);
}

void MadAgents::clear_sends() {
  for (auto& [id, agent] : agents_) agent.sends.clear();
}

std::vector<uint32_t> MadAgents::ids() const {
  std::vector<uint32_t> ids;
  for (const auto& [id, agent] : agents_) ids.push_back(id);
  return ids;
}

MadAgents::Agent* MadAgents::find(uint32_t id) {
  auto found = agents_.find(id);
  return found == agents_.end() ? nullptr : &found->second;
}

uint32_t MadAgents::receiver_of(const Mad& mad) const {
  if (mad.base_version() != kBaseVersion) return 0;
  if (mad.is_response()) {
    auto id = static_cast<uint32_t>(mad.tid() >> 32);
    return agents_.contains(id) ? id : 0;
  }
  uint32_t oui = is_vendor2(mad.mgmt_class()) ? wire::load32(&mad.bytes[36]) & 0xffffff : 0;
  auto found =
      methods_.find(method_key(mad.mgmt_class(), mad.class_version(), oui, mad.method() & 0x7f));
  return found == methods_.end() ? 0 : found->second;
}

}  // namespace rocefs
