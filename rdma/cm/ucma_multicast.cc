// Multicast groups that ids join and leave. A port of RoCE takes every group's packets: to join
// says which address the group has, and librdmacm attaches the queue pair.
#include <cerrno>

#include "rdma/cm/sockaddr.h"
#include "rdma/cm/ucma.h"
#include "rdma/cm/ucma_abi.h"
#include "rdma/cm/ucma_call.h"

namespace rocefs {

using namespace ucma;

Result<void> UcmaChannel::join_ip_multicast(Call& call) {
  auto asked = read<JoinIpMulticast>(call.in);
  if (!asked) return asked.error();
  return join(call, asked->id, asked->uid, address_of(asked->address.bytes));
}

Result<void> UcmaChannel::join_multicast(Call& call) {
  auto asked = read<JoinMulticast>(call.in);
  if (!asked) return asked.error();
  if (asked->flags > kSendsOnly) return errorf(EINVAL, "join flags {:#x}", asked->flags);
  return join(call, asked->id, asked->uid, address_of(asked->address.bytes, asked->size));
}

Result<void> UcmaChannel::join(Call& call, uint32_t number, uint64_t uid,
                               const Result<CmAddress>& group) {
  if (!group) return group.error();
  Result<Context*> context = context_of(number);
  if (!context) return context.error();
  if (call.out < sizeof(IdAnswer)) return Error{ENOSPC, "the answer does not fit"};
  if (events_.size() >= kMaxEvents) return errorf(ENOMEM, "{} events wait", events_.size());
  Result<CmEvent> joined = (*context)->id->join(*group);
  if (!joined) return joined.error();
  Shares::Share share = ucma_.membership_shares_.take(owner_.uid, owner_.privileged);
  if (!share) return Error{ENOMEM, "there are as many members of groups as there may be"};
  uint32_t& next = ucma_.next_membership_;
  while (ucma_.memberships_.count(next)) next = (next + 1) % Ucma::kMaxIds;
  uint32_t membership = next;
  next = (next + 1) % Ucma::kMaxIds;
  ucma_.memberships_[membership] = {*context, uid, 0, std::move(share)};
  (*context)->memberships.push_back(membership);
  queue({*context, nullptr, *joined, membership});
  return give(IdAnswer{membership}, call.out, call.reply.bytes);
}

Result<void> UcmaChannel::leave_multicast(Call& call) {
  auto asked = read<LeaveMulticast>(call.in);
  if (!asked) return asked.error();
  if (call.out < sizeof(EventsAnswer)) return Error{ENOSPC, "the answer does not fit"};
  auto found = ucma_.memberships_.find(asked->id);
  if (found == ucma_.memberships_.end()) return errorf(ENOENT, "no member {}", asked->id);
  Context& context = *found->second.of;
  if (context.channel != this) return errorf(EINVAL, "member {} is another channel's", asked->id);
  EventsAnswer answer{found->second.reported};
  std::erase_if(events_, [&](const Waiting& one) { return one.membership == asked->id; });
  std::erase(context.memberships, asked->id);
  ucma_.memberships_.erase(found);
  return give(answer, call.out, call.reply.bytes);
}

}  // namespace rocefs
