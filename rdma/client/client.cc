#include "rdma/client/client.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace rocefs {
namespace {

constexpr size_t kMaxChannels = 1024;
// ibv_event_type
constexpr uint32_t kDeviceFatal = 8, kPortActive = 9, kPortError = 10, kGidChange = 18;

bool takes_away(uint32_t op) {
  return op == ROCEFS_OP_DEREG_MR || op == ROCEFS_OP_DESTROY_CQ || op == ROCEFS_OP_DESTROY_SRQ ||
         op == ROCEFS_OP_DESTROY_QP;
}

}  // namespace

Error nothing_to_destroy(std::string_view what, uint32_t handle) {
  return errorf(ENOENT, "no such {}: {}", what, handle);
}

Error no_such(std::string_view what, uint32_t handle) {
  return errorf(EINVAL, "no such {}: {}", what, handle);
}

Client::Client(Device& device, Shared& shared, std::shared_ptr<Process> process,
               std::shared_ptr<SharedMemory> page, std::string comm, uint32_t events)
    : device_(&device),
      shared_(shared),
      number_(++shared.context),
      process_(std::move(process)),
      memory_(std::move(page)),
      page_(memory_->at<rocefs_context_page>(0)),
      comm_(std::move(comm)),
      events_(events) {
  device.add_client(*this);
}

Client::~Client() {
  if (device_) {
    device_->remove_client(*this);
    give_back();
  }
  process_->flush();
  process_->end();
}

void Client::give_back() {
  qps_.each([](ClientQp& qp) { qp.destroy(); });
  by_number_.clear();
  qps_.clear();
  xrc_srqs_.clear();
  srqs_.clear();
  xrcds_.clear();
  mws_.each([&](Mw& mw) { (void)device_->memory().remove(mw.key); });
  mws_.clear();
  mrs_.each([&](Mr& mr) { (void)device_->memory().remove(mr.key); });
  mrs_.clear();
  dms_.clear();
  cqs_.clear();
  pds_.clear();
  doorbells_.clear();
  served_again_.clear();
}

void Client::device_removed(Device& device) {
  qps_.each([](ClientQp& qp) { qp.flush(); });
  give_back();
  device.remove_client(*this);
  device_ = nullptr;
  store_release(page_->gone, 1);  // after the last completion
  (void)tell(kDeviceFatal, 0);
  process_->close_socket(events_);  // pollers see the end of events
  for (const auto& [name, socket] : channels_) process_->close_socket(socket);
  channels_.clear();
  completed_ = wake_ = true;
  flush(false);
}

ClientQp* Client::completed(const Completion& completion) {
  completed_ = true;
  ++completions_;
  if (completion.srqn != 0) {
    auto srq = xrc_srqs_.find(completion.srqn);
    if (srq != xrc_srqs_.end()) srq->second->release();
    wake_ = true;
    return nullptr;
  }
  auto qp = by_number_.find(completion.qpn);
  bool known = qp != by_number_.end();
  if (known) qp->second->release();
  bool sent = completion.opcode != WcOpcode::kReceive &&
              completion.opcode != WcOpcode::kReceiveWriteImm &&
              completion.status == WcStatus::kSuccess;
  wake_ |= !known || !sent || qp->second->must_wake();
  return known ? qp->second : nullptr;
}

bool Client::raise(uint32_t channel, uint64_t cookie) {
  return process_->send(channel, {reinterpret_cast<const uint8_t*>(&cookie), sizeof cookie});
}

bool Client::tell(uint32_t type, uint64_t element) {
  rocefs_async_event event{element, type, 0};
  return process_->send(events_, {reinterpret_cast<const uint8_t*>(&event), sizeof event});
}

void Client::port_changed(const Port& port) {
  (void)tell(port.link_up() ? kPortActive : kPortError, port.number());
}

void Client::gids_changed(const Port& port) {
  (void)tell(kGidChange, port.number());
}

bool Client::wanted() const {
  return std::atomic_ref(page_->rung).load() != 0 || !served_again_.empty() || process_->busy();
}

bool Client::poll() {
  bool any = process_->take_done();
  std::vector<uint32_t> again;
  again.swap(served_again_);
  auto serve = [&](uint32_t bell) {
    if (bell >= doorbells_.size() || !doorbells_[bell]) return;
    if (doorbells_[bell]->serve()) served_again_.push_back(bell);
  };
  for (uint32_t bell : again) serve(bell);
  any |= !again.empty();
  std::atomic_ref rung(page_->rung);
  if (rung.load(std::memory_order_relaxed) == 0) return any;
  for (uint64_t words = rung.exchange(0); words; words &= words - 1) {
    auto word = static_cast<uint32_t>(std::countr_zero(words));
    uint64_t bells = std::atomic_ref(page_->doorbells[word]).exchange(0);
    for (; bells; bells &= bells - 1) {
      serve(word * 64 + static_cast<uint32_t>(std::countr_zero(bells)));
    }
  }
  return true;
}

uint64_t Client::flush(bool more) {
  constexpr int kMaxHeldBack = 8;
  uint64_t bytes = process_->asked_bytes();
  if (more && bytes < Process::kLump && ++held_back_ <= kMaxHeldBack) return 0;
  held_back_ = 0;
  bytes = process_->flush();
  if (!completed_) return bytes;
  completed_ = false;
  bool wake = std::exchange(wake_, false);
  store_release(page_->moderated, wake ? 0 : 1);
  std::atomic_ref(page_->completions).store(completions_);
  if (!wake || std::atomic_ref(page_->waiters).load() == 0) return bytes;
  ::syscall(SYS_futex, &page_->completions, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  return bytes;
}

QpOwner Client::owner() const {
  const Credentials& who = process_->credentials();
  return {who.pid, comm_, who.uid, who.privileged()};
}

Result<uint32_t> Client::take_doorbell(ClientQueue& queue) {
  auto free = std::find(doorbells_.begin(), doorbells_.end(), nullptr);
  if (free == doorbells_.end()) {
    if (doorbells_.size() == ROCEFS_MAX_QUEUES) return Error{ENOMEM, "too many queues"};
    free = doorbells_.insert(free, nullptr);
  }
  *free = &queue;
  return static_cast<uint32_t>(free - doorbells_.begin());
}

void Client::give_doorbell(ClientQueue& queue) {
  std::replace(doorbells_.begin(), doorbells_.end(), &queue, static_cast<ClientQueue*>(nullptr));
}

void Client::request(const rocefs_request& request, Attachment attachment, Reply reply) {
  rocefs_answer answer{};
  Result<void> done = Error{ENODEV, "the device has left"};
  if (request.op == ROCEFS_OP_DESTROY_QP && drains_first(request, attachment, reply)) return;
  if (device_) {
    if (request.op == ROCEFS_OP_REG_MR) return reg_mr(request.u.reg_mr, std::move(reply));
    if (request.op == ROCEFS_OP_REREG_MR) return rereg_mr(request.u.rereg_mr, std::move(reply));
    if (request.op == ROCEFS_OP_CREATE_CHANNEL) {
      return create_channel(request.u.channel, attachment.socket, std::move(reply));
    }
    done = execute(request, attachment, answer);
  }
  if (!done) {
    if (attachment.socket != 0) process_->close_socket(attachment.socket);
    answer = refusal(done.error());
  } else if (takes_away(request.op)) {
    // Waits for moves of the client's memory; events that are not sent yet are dropped.
    return process_->run([process = process_.get(), cookie = attachment.cookie,
                          reply = std::move(reply), answer]() mutable -> Task {
      if (cookie != 0) {
        EventSockets::Unsent unsent = process->forget_events(cookie);
        answer.u.events.completions -= unsent.completions;
        answer.u.events.asynchronous -= unsent.asynchronous;
      }
      return [reply = std::move(reply), answer]() mutable { reply(answer); };
    });
  }
  reply(answer);
}

Result<void> Client::execute(const rocefs_request& request, Attachment& attachment,
                             rocefs_answer& answer) {
  switch (request.op) {
    case ROCEFS_OP_QUERY_PORT:
      return query_port(request.u.handle, answer);
    case ROCEFS_OP_CHECK_ADDRESS: {
      Result<AddressVector> path = address_of(*device_, request.u.address);
      return path ? Result<void>{} : Result<void>(path.error());
    }
    case ROCEFS_OP_ALLOC_PD:
      if (pds_.full()) return Error{ENOMEM, "too many protection domains"};
      answer.u.handle = pds_.add(std::make_unique<Pd>(Pd{++shared_.pd, 0}));
      return {};
    case ROCEFS_OP_DEALLOC_PD:
      return dealloc_pd(request.u.handle);
    case ROCEFS_OP_CREATE_COPIER:
      if (!process_->take_copier(std::move(attachment.memory))) {
        return Error{EEXIST, "the copier exists already"};
      }
      return {};
    case ROCEFS_OP_SHARE_MR:
      return share_mr(request.u.reg_mr, attachment, answer);
    case ROCEFS_OP_DEREG_MR:
      return dereg_mr(request.u.handle);
    case ROCEFS_OP_ALLOC_DM:
      return alloc_dm(request.u.alloc_dm, attachment, answer);
    case ROCEFS_OP_FREE_DM:
      return free_dm(request.u.handle);
    case ROCEFS_OP_REG_DM_MR:
      return reg_dm_mr(request.u.reg_dm_mr, answer);
    case ROCEFS_OP_CREATE_CQ:
      return create_cq(request.u.create_cq, attachment, answer);
    case ROCEFS_OP_DESTROY_CQ:
      return destroy_cq(request.u.handle, attachment, answer);
    case ROCEFS_OP_OPEN_XRCD:
      return open_xrcd(request.u.open_xrcd, answer);
    case ROCEFS_OP_CLOSE_XRCD:
      return close_xrcd(request.u.handle);
    case ROCEFS_OP_OPEN_QP:
      return open_xrc_target(request.u.create_qp, attachment, answer);
    case ROCEFS_OP_CREATE_SRQ:
      return create_srq(request.u.create_srq, attachment, answer);
    case ROCEFS_OP_MODIFY_SRQ:
      return modify_srq(request.u.srq);
    case ROCEFS_OP_QUERY_SRQ:
      return query_srq(request.u.handle, answer);
    case ROCEFS_OP_DESTROY_SRQ:
      return destroy_srq(request.u.handle, attachment, answer);
    case ROCEFS_OP_CREATE_QP:
      return create_qp(request.u.create_qp, attachment, answer);
    case ROCEFS_OP_MODIFY_QP:
      return modify_qp(request.u.qp);
    case ROCEFS_OP_QUERY_QP:
      return query_qp(request.u.handle, answer);
    case ROCEFS_OP_DESTROY_QP:
      return destroy_qp(request.u.handle, attachment, answer);
    case ROCEFS_OP_RESIZE_CQ:
      return resize_cq(request.u.resize_cq, attachment, answer);
    case ROCEFS_OP_ALLOC_MW:
      return alloc_mw(request.u.alloc_mw, answer);
    case ROCEFS_OP_DEALLOC_MW:
      return dealloc_mw(request.u.handle);
    case ROCEFS_OP_ATTACH_MCAST:
      return attach_multicast(request.u.multicast);
    case ROCEFS_OP_DETACH_MCAST:
      return detach_multicast(request.u.multicast);
    case ROCEFS_OP_PUT_BACK_EVENT:
      return put_back(request.u.put_back);
  }
  return errorf(EOPNOTSUPP, "no such operation: {}", request.op);
}

Result<void> Client::query_port(uint32_t port, rocefs_answer& answer) {
  if (port < 1 || port > device_->port_count()) return no_such("port", port);
  describe(device_->port(port), answer.u.port);
  return {};
}

Result<void> Client::dealloc_pd(uint32_t handle) {
  Pd* pd = pds_.find(handle);
  if (!pd) return nothing_to_destroy("protection domain", handle);
  if (pd->users > 0) return Error{EBUSY, "the protection domain is in use"};
  pds_.take(handle);
  return {};
}

Result<void> Client::create_cq(const rocefs_create_cq& wanted, Attachment& attachment,
                               rocefs_answer& answer) {
  if (cqs_.full()) return Error{ENOMEM, "too many completion queues"};
  auto channel = channels_.find(wanted.channel);
  if (wanted.channel != 0 && channel == channels_.end()) {
    return Error{EINVAL, "no such completion channel"};
  }
  uint32_t socket = channel == channels_.end() ? 0 : channel->second;
  answer.u.created = attachment.layout;
  answer.u.created.handle =
      cqs_.add(std::make_unique<ClientCq>(*this, ++shared_.cq, std::move(attachment.memory),
                                          attachment.layout.entries, wanted, socket));
  return {};
}

Result<void> Client::resize_cq(const rocefs_resize_cq& wanted, Attachment& attachment,
                               rocefs_answer& answer) {
  ClientCq* cq = cqs_.find(wanted.handle);
  if (!cq) return no_such("completion queue", wanted.handle);
  Result<void> resized = cq->resize(std::move(attachment.memory), attachment.layout.entries);
  if (!resized) return resized;
  answer.u.created = attachment.layout;
  answer.u.created.handle = wanted.handle;
  return {};
}

Result<void> Client::destroy_cq(uint32_t handle, Attachment& attachment, rocefs_answer& answer) {
  ClientCq* cq = cqs_.find(handle);
  if (!cq) return nothing_to_destroy("completion queue", handle);
  if (cq->users > 0) return Error{EBUSY, "the completion queue is in use"};
  attachment.cookie = cq->cookie();
  answer.u.events = {cq->completion_events(), cq->async_events()};
  cqs_.take(handle);
  return {};
}

// At the limit, channels that the program has closed are forgotten first. The copy thread learns of
// them when it adopts the socket of this one, which it has done when it runs the task.
void Client::create_channel(uint64_t name, uint32_t socket, Reply reply) {
  if (channels_.size() < kMaxChannels) return add_channel(name, socket, reply);
  process_->run([alive = std::weak_ptr(alive_), this, name, socket,
                 reply = std::move(reply)]() mutable -> Task {
    return [alive = std::move(alive), this, name, socket, reply = std::move(reply)]() mutable {
      if (alive.expired()) return;
      std::erase_if(channels_, [&](const auto& at) { return !process_->has_socket(at.second); });
      add_channel(name, socket, reply);
    };
  });
}

void Client::add_channel(uint64_t name, uint32_t socket, Reply& reply) {
  Result<void> fits;
  if (socket == 0 || name == 0) fits = Error{EINVAL, "a channel needs a socket and a name"};
  if (channels_.size() == kMaxChannels) fits = Error{ENOMEM, "too many completion channels"};
  if (!fits) {
    if (socket != 0) process_->close_socket(socket);
    return reply(refusal(fits.error()));
  }
  auto [at, fresh] = channels_.try_emplace(name, socket);
  if (!fresh) process_->close_socket(std::exchange(at->second, socket));
  reply({});
}

Result<void> Client::put_back(const rocefs_put_back& event) {
  if (event.channel == 0) {
    (void)tell(event.event.type, event.event.element);
    return {};
  }
  auto channel = channels_.find(event.channel);
  if (channel == channels_.end()) return Error{EINVAL, "no such completion channel"};
  (void)raise(channel->second, event.event.element);
  return {};
}

Result<void> Client::create_srq(const rocefs_create_srq& wanted, Attachment& attachment,
                                rocefs_answer& answer) {
  Pd* pd = pds_.find(wanted.pd);
  if (!pd) return no_such("protection domain", wanted.pd);
  if (srqs_.full()) return Error{ENOMEM, "too many shared receive queues"};
  auto srq = std::make_unique<ClientSrq>(*this, std::move(attachment.memory), attachment.layout,
                                         wanted, ++shared_.srq, pd->number);
  if (wanted.xrcd != 0) {
    if (Result<void> made = make_xrc(*srq); !made) return made;
  }
  Result<uint32_t> bell = take_doorbell(*srq);
  if (!bell) return bell.error();
  ++pd->users;
  if (srq->is_xrc()) {
    ++xrcds_.find(wanted.xrcd)->users;
    ++cqs_.find(wanted.cq)->users;
    xrc_srqs_[srq->number()] = srq.get();
  }
  answer.u.created = attachment.layout;
  answer.u.created.doorbell = *bell;
  answer.u.created.qpn = srq->number();
  answer.u.created.handle = srqs_.add(std::move(srq));
  return {};
}

Result<void> Client::modify_srq(const rocefs_srq_attr& wanted) {
  ClientSrq* srq = srqs_.find(wanted.handle);
  if (!srq) return no_such("shared receive queue", wanted.handle);
  if (wanted.limit > srq->created().max_wr) {
    return errorf(EINVAL, "limit {} of a queue of {}", wanted.limit, srq->created().max_wr);
  }
  srq->set_limit(wanted.limit);
  return {};
}

Result<void> Client::query_srq(uint32_t handle, rocefs_answer& answer) {
  ClientSrq* srq = srqs_.find(handle);
  if (!srq) return no_such("shared receive queue", handle);
  answer.u.srq = {handle, srq->created().max_wr, srq->created().max_sge, srq->limit()};
  return {};
}

Result<void> Client::destroy_srq(uint32_t handle, Attachment& attachment, rocefs_answer& answer) {
  ClientSrq* srq = srqs_.find(handle);
  if (!srq) return nothing_to_destroy("shared receive queue", handle);
  if (srq->users > 0) return Error{EBUSY, "the shared receive queue is in use"};
  const rocefs_create_srq& created = srq->created();
  --pds_.find(created.pd)->users;
  if (srq->is_xrc()) {
    --xrcds_.find(created.xrcd)->users;
    --cqs_.find(created.cq)->users;
    xrc_srqs_.erase(srq->number());
  }
  give_doorbell(*srq);
  attachment.cookie = created.cookie;
  answer.u.events = {0, srq->async_events()};
  srqs_.take(handle);
  return {};
}

rocefs_answer refusal(const Error& why) {
  rocefs_answer answer{};
  answer.error = why.code;
  why.reason.copy(answer.u.reason, sizeof answer.u.reason - 1);
  return answer;
}

}  // namespace rocefs
