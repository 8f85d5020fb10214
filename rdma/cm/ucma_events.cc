// Events that programs read, and those that they write themselves: librdmacm 61 and later writes
// one when it has resolved a name without the kernel (rdma_resolve_addrinfo()).
#include <cerrno>

#include "rdma/cm/ucma.h"
#include "rdma/cm/ucma_abi.h"
#include "rdma/cm/ucma_call.h"
#include "rdma/cm/ucma_format.h"

namespace rocefs {

using namespace ucma;

Result<void> UcmaChannel::get_event(Call& call) {
  auto asked = read<GetEvent>(call.in);
  if (!asked) return asked.error();
  constexpr size_t kMinAnswer = offsetof(EventAnswer, reserved);
  if (call.out < kMinAnswer) return Error{ENOSPC, "the answer does not fit"};
  if (events_.empty()) return Error{EAGAIN, "no event waits"};
  Waiting waiting = std::move(events_.front());
  events_.pop_front();
  auto membership =
      waiting.membership ? ucma_.memberships_.find(*waiting.membership) : ucma_.memberships_.end();
  bool of_group = membership != ucma_.memberships_.end();
  ++(of_group ? membership->second.reported : waiting.of->reported);
  if (waiting.fresh) {
    waiting.fresh->fetched = true;
    ++waiting.of->backlog;
  }
  EventAnswer answer{};
  answer.uid = of_group ? membership->second.uid : waiting.of->uid;
  answer.id = waiting.fresh ? waiting.fresh->number : waiting.of->number;
  if (of_group) answer.id = membership->first;
  format_event(*(waiting.fresh ? waiting.fresh : waiting.of)->id, waiting.event, answer);
  return give(answer, call.out, call.reply.bytes, kMinAnswer);
}

Result<void> UcmaChannel::notify(Call& call) {
  constexpr uint32_t kCommunicationEstablished = 4;  // IBV_EVENT_COMM_EST
  auto asked = read<Notify>(call.in);
  if (!asked) return asked.error();
  Result<Context*> context = context_of(asked->id);
  if (!context) return context.error();
  if (asked->event != kCommunicationEstablished) return {};
  return (*context)->id->communication_established();
}

// Service records are a subnet administrator's, which RoCE has not (rdma_resolve_ib_service() of
// Linux).
Result<void> UcmaChannel::resolve_ib_service(Call& call) {
  auto asked = read<ResolveIbService>(call.in);
  if (!asked) return asked.error();
  Result<Context*> context = context_of(asked->id);
  if (!context) return context.error();
  if (!(*context)->id->port()) return errorf(EINVAL, "id {} is not bound to a port", asked->id);
  return Error{EOPNOTSUPP, "RoCE has no service records"};
}

// ucma_write_cm_event() of Linux.
Result<void> UcmaChannel::write_event(Call& call) {
  auto asked = read<WriteEvent>(call.in);
  if (!asked) return asked.error();
  auto type = static_cast<CmEventType>(asked->type);
  if (type != CmEventType::kUser && type != CmEventType::kInternal) {
    return errorf(EINVAL, "a program may not write event {}", asked->type);
  }
  Result<Context*> context = context_of(asked->id);
  if (!context) return context.error();
  if (events_.size() >= kMaxEvents) return errorf(ENOMEM, "{} events wait", events_.size());
  CmEvent event{type, static_cast<int32_t>(asked->status)};
  event.argument = asked->argument;
  queue({*context, nullptr, event});
  return {};
}

}  // namespace rocefs
