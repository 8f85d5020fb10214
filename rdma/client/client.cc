#include "rdma/client/client.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace rocefs {
namespace {

// Packets that may be unacknowledged: 1 MiB of the largest bridges the time until the copy threads
// of both ends have their turns.
constexpr uint32_t kWindow = 256;
constexpr size_t kMaxChannels = 1024;
constexpr uint32_t kDeviceFatal = 8;  // IBV_EVENT_DEVICE_FATAL

Error no_such(std::string_view what, uint32_t handle) {
  return errorf(EINVAL, "there is no {} {}", what, handle);
}

bool takes_away(uint32_t op) {
  return op == ROCEFS_OP_DEREG_MR || op == ROCEFS_OP_DESTROY_CQ || op == ROCEFS_OP_DESTROY_SRQ ||
         op == ROCEFS_OP_DESTROY_QP;
}

}  // namespace

Client::Client(Device& device, Numbers& numbers, std::shared_ptr<Process> process,
               std::shared_ptr<SharedMemory> page, std::string comm, uint32_t events)
    : device_(&device),
      numbers_(numbers),
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
  srqs_.clear();
  mrs_.each([&](Mr& mr) { (void)device_->memory().remove(mr.key); });
  mrs_.clear();
  cqs_.clear();
  pds_.clear();
  doorbells_.clear();
  served_again_.clear();
}

void Client::device_removed(Device& device) {
  qps_.each([](ClientQp& qp) { qp.qp().enter_error(); });  // so that all that is queued ends
  give_back();
  device.remove_client(*this);
  device_ = nullptr;
  store_release(page_->gone, 1);  // after the last completion
  tell(kDeviceFatal, 0);
  process_->close_socket(events_);  // who waits for an event hears that none will come
  for (const auto& [name, socket] : channels_) process_->close_socket(socket);
  channels_.clear();
  completed_ = hurried_ = true;
  flush(false);
}

ClientQp* Client::completed(const Completion& completion) {
  completed_ = true;
  ++completions_;
  auto qp = by_number_.find(completion.qpn);
  bool known = qp != by_number_.end();
  if (known) qp->second->release();
  bool sent = completion.opcode != WcOpcode::kReceive &&
              completion.opcode != WcOpcode::kReceiveWriteImm &&
              completion.status == WcStatus::kSuccess;
  hurried_ |= !known || !sent || qp->second->hurries();
  return known ? qp->second : nullptr;
}

void Client::raise(uint32_t channel, uint64_t cookie) {
  process_->send(channel, {reinterpret_cast<const uint8_t*>(&cookie), sizeof cookie});
}

void Client::tell(uint32_t type, uint64_t element) {
  rocefs_async_event event{element, type, 0};
  process_->send(events_, {reinterpret_cast<const uint8_t*>(&event), sizeof event});
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
  constexpr int kMostHeldBack = 8;
  uint64_t bytes = process_->asked_bytes();
  if (more && bytes < Process::kLump && ++held_back_ <= kMostHeldBack) return 0;
  held_back_ = 0;
  process_->flush();
  if (!completed_) return bytes;
  completed_ = false;
  bool hurried = std::exchange(hurried_, false);
  store_release(page_->unhurried, hurried ? 0 : 1);
  std::atomic_ref(page_->completions).store(completions_);
  if (!hurried || std::atomic_ref(page_->waiters).load() == 0) return bytes;
  ::syscall(SYS_futex, &page_->completions, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  return bytes;
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
  if (device_) {
    if (request.op == ROCEFS_OP_REG_MR) return reg_mr(request.u.reg_mr, std::move(reply));
    done = execute(request, attachment, answer);
  }
  if (!done) {
    if (attachment.socket != 0) process_->close_socket(attachment.socket);
    answer = refusal(done.error());
  } else if (takes_away(request.op)) {
    // What is under way in the client's memory ends first; events that are not sent yet never are.
    return process_->run([process = process_.get(), cookie = attachment.cookie,
                          reply = std::move(reply), answer]() mutable -> Task {
      if (cookie != 0) {
        Process::Unsent unsent = process->forget_events(cookie);
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
      answer.u.handle = pds_.add(std::make_unique<Pd>(Pd{++numbers_.pd, 0}));
      return {};
    case ROCEFS_OP_DEALLOC_PD:
      return dealloc_pd(request.u.handle);
    case ROCEFS_OP_DEREG_MR:
      return dereg_mr(request.u.handle);
    case ROCEFS_OP_CREATE_CQ:
      return create_cq(request.u.create_cq, attachment, answer);
    case ROCEFS_OP_DESTROY_CQ:
      return destroy_cq(request.u.handle, attachment, answer);
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
      return destroy_qp(request.u.handle);
    case ROCEFS_OP_CREATE_CHANNEL:
      return create_channel(request.u.channel, attachment.socket);
    case ROCEFS_OP_PUT_BACK_EVENT:
      return put_back(request.u.put_back);
  }
  return errorf(EOPNOTSUPP, "there is no operation {}", request.op);
}

Result<void> Client::query_port(uint32_t port, rocefs_answer& answer) {
  if (port < 1 || port > device_->port_count()) return no_such("port", port);
  describe(device_->port(port), answer.u.port);
  return {};
}

Result<void> Client::dealloc_pd(uint32_t handle) {
  Pd* pd = pds_.find(handle);
  if (!pd) return no_such("protection domain", handle);
  if (pd->users > 0) return Error{EBUSY, "the protection domain is in use"};
  pds_.take(handle);
  return {};
}

void Client::reg_mr(const rocefs_reg_mr& wanted, Reply reply) {
  auto refuse = [&](const Error& why) { reply(refusal(why)); };
  if (!pds_.find(wanted.pd)) return refuse(no_such("protection domain", wanted.pd));
  if (wanted.address + wanted.length < wanted.address) {
    return refuse(Error{EINVAL, "the region passes the end of the address space"});
  }
  // As the kernel pins them, so are all pages touched before the region is there.
  process_->run([this, alive = std::weak_ptr(alive_), process = process_.get(), wanted,
                 reply = std::move(reply)]() mutable -> Task {
    bool populated = process->populated(wanted.address, wanted.length);
    return [this, alive = std::move(alive), wanted, populated, reply = std::move(reply)]() mutable {
      if (alive.expired()) return;
      rocefs_answer answer{};
      Result<void> added =
          populated ? add_region(wanted, answer)
                    : Error{EFAULT, "the region's memory is not there, or may not be touched"};
      reply(added ? answer : refusal(added.error()));
    };
  });
}

Result<void> Client::add_region(const rocefs_reg_mr& wanted, rocefs_answer& answer) {
  if (!device_) return Error{ENODEV, "the device has left"};
  Pd* pd = pds_.find(wanted.pd);
  if (!pd) return no_such("protection domain", wanted.pd);
  if (mrs_.full()) return Error{ENOMEM, "too many regions"};
  Result<uint8_t> access = access_of(wanted.access);
  if (!access) return access.error();
  auto memory = std::make_shared<ClientMemory>(process_, wanted.address);
  Result<uint32_t> key =
      device_->memory().add(std::move(memory), wanted.iova, wanted.length, pd->number, *access);
  if (!key) return key.error();
  ++pd->users;
  answer.u.mr.handle = mrs_.add(std::make_unique<Mr>(Mr{*key, pd}));
  answer.u.mr.lkey = answer.u.mr.rkey = *key;
  return {};
}

Result<void> Client::dereg_mr(uint32_t handle) {
  Mr* mr = mrs_.find(handle);
  if (!mr) return no_such("region", handle);
  if (Result<void> removed = device_->memory().remove(mr->key); !removed) return removed;
  --mr->pd->users;
  mrs_.take(handle);
  return {};
}

Result<void> Client::create_cq(const rocefs_create_cq& wanted, Attachment& attachment,
                               rocefs_answer& answer) {
  if (cqs_.full()) return Error{ENOMEM, "too many completion queues"};
  auto channel = channels_.find(wanted.channel);
  if (wanted.channel != 0 && channel == channels_.end()) {
    return Error{EINVAL, "there is no such completion channel"};
  }
  uint32_t socket = channel == channels_.end() ? 0 : channel->second;
  answer.u.created = attachment.layout;
  answer.u.created.handle = cqs_.add(std::make_unique<ClientCq>(
      *this, std::move(attachment.memory), attachment.layout.entries, wanted.cookie, socket));
  return {};
}

Result<void> Client::destroy_cq(uint32_t handle, Attachment& attachment, rocefs_answer& answer) {
  ClientCq* cq = cqs_.find(handle);
  if (!cq) return no_such("completion queue", handle);
  if (cq->users > 0) return Error{EBUSY, "the completion queue is in use"};
  attachment.cookie = cq->cookie();
  answer.u.events = {cq->completion_events(), cq->async_events()};
  cqs_.take(handle);
  return {};
}

Result<void> Client::create_channel(uint64_t name, uint32_t socket) {
  if (socket == 0 || name == 0) return Error{EINVAL, "a channel needs a socket and a name"};
  if (channels_.size() == kMaxChannels) {
    std::erase_if(channels_, [&](const auto& at) { return !process_->has_socket(at.second); });
    if (channels_.size() == kMaxChannels) return Error{ENOMEM, "too many completion channels"};
  }
  auto [at, fresh] = channels_.try_emplace(name, socket);
  if (!fresh) process_->close_socket(std::exchange(at->second, socket));
  return {};
}

Result<void> Client::put_back(const rocefs_put_back& event) {
  if (event.channel == 0) {
    tell(event.event.type, event.event.element);
    return {};
  }
  auto channel = channels_.find(event.channel);
  if (channel == channels_.end()) return Error{EINVAL, "there is no such completion channel"};
  raise(channel->second, event.event.element);
  return {};
}

Result<void> Client::create_srq(const rocefs_create_srq& wanted, Attachment& attachment,
                                rocefs_answer& answer) {
  Pd* pd = pds_.find(wanted.pd);
  if (!pd) return no_such("protection domain", wanted.pd);
  if (srqs_.full()) return Error{ENOMEM, "too many shared receive queues"};
  auto srq = std::make_unique<ClientSrq>(*this, std::move(attachment.memory), attachment.layout,
                                         wanted, pd->number);
  Result<uint32_t> bell = take_doorbell(*srq);
  if (!bell) return bell.error();
  ++pd->users;
  answer.u.created = attachment.layout;
  answer.u.created.doorbell = *bell;
  answer.u.created.handle = srqs_.add(std::move(srq));
  answer.u.created.qpn = answer.u.created.handle;
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
  if (!srq) return no_such("shared receive queue", handle);
  if (srq->users > 0) return Error{EBUSY, "the shared receive queue is in use"};
  --pds_.find(srq->created().pd)->users;
  give_doorbell(*srq);
  attachment.cookie = srq->created().cookie;
  answer.u.events = {0, srq->async_events()};
  srqs_.take(handle);
  return {};
}

Result<void> Client::create_qp(const rocefs_create_qp& wanted, Attachment& attachment,
                               rocefs_answer& answer) {
  Pd* pd = pds_.find(wanted.pd);
  ClientCq* send_cq = cqs_.find(wanted.send_cq);
  ClientCq* receive_cq = cqs_.find(wanted.receive_cq);
  ClientSrq* srq = srqs_.find(wanted.srq);
  std::optional<QpType> type = qp_type_of(wanted.type);
  if (!pd) return no_such("protection domain", wanted.pd);
  if (!send_cq) return no_such("completion queue", wanted.send_cq);
  if (!receive_cq) return no_such("completion queue", wanted.receive_cq);
  if (wanted.srq && !srq) return no_such("shared receive queue", wanted.srq);
  if (!type) return errorf(EOPNOTSUPP, "queue pairs of type {} are not supported", wanted.type);
  if (qps_.full()) return Error{ENOMEM, "too many queue pairs"};
  auto made = std::make_unique<ClientQp>(*this, attachment.memory, attachment.layout, wanted);
  QpInit init;
  init.type = *type;
  init.pd = pd->number;
  init.send_cq = send_cq;
  init.receive_cq = receive_cq;
  init.shared_receives = srq ? &srq->receives() : nullptr;
  init.send_depth = attachment.layout.entries;
  init.receive_depth = attachment.layout.receive_entries;
  init.owner = {process_->credentials().pid, comm_};
  Result<uint32_t> bell = take_doorbell(*made);
  if (!bell) return bell.error();
  Result<Qp*> qp = device_->create_qp(init);
  Result<void> attached = qp ? made->attach(**qp, srq, attachment.layout) : qp.error();
  if (!attached) {
    give_doorbell(*made);
    if (qp) device_->destroy_qp(**qp);
    return attached;
  }
  ++pd->users;
  ++send_cq->users;
  ++receive_cq->users;
  if (srq) ++srq->users;
  by_number_[(*qp)->number()] = made.get();
  answer.u.created = attachment.layout;
  answer.u.created.doorbell = *bell;
  answer.u.created.qpn = (*qp)->number();
  answer.u.created.handle = qps_.add(std::move(made));
  return {};
}

Result<void> Client::modify_qp(const rocefs_qp_attr& wanted) {
  ClientQp* qp = qps_.find(wanted.handle);
  if (!qp) return no_such("queue pair", wanted.handle);
  Result<Modification> change = modification_of(*device_, qp->qp().state(), wanted);
  if (!change) return change.error();
  if (qp->qp().type() == QpType::kRc && change->to == QpState::kRtr) {
    change->attributes.window = kWindow;
    change->mask |= kQpWindow;
  }
  Result<void> modified = qp->qp().modify(change->to, change->attributes, change->mask);
  if (!modified) return modified;
  if (change->to == QpState::kReset) qp->drop();
  (void)qp->serve();
  return {};
}

Result<void> Client::query_qp(uint32_t handle, rocefs_answer& answer) {
  ClientQp* qp = qps_.find(handle);
  if (!qp) return no_such("queue pair", handle);
  answer.u.qp.handle = handle;
  describe(qp->qp().attributes(), qp->qp().state(), qp->qp().port(), answer.u.qp);
  return {};
}

Result<void> Client::destroy_qp(uint32_t handle) {
  ClientQp* qp = qps_.find(handle);
  if (!qp) return no_such("queue pair", handle);
  const rocefs_create_qp& created = qp->created();
  by_number_.erase(qp->qp().number());
  qp->destroy();
  give_doorbell(*qp);
  --pds_.find(created.pd)->users;
  --cqs_.find(created.send_cq)->users;
  --cqs_.find(created.receive_cq)->users;
  if (qp->srq()) --qp->srq()->users;
  qps_.take(handle);
  return {};
}

rocefs_answer refusal(const Error& why) {
  rocefs_answer answer{};
  answer.error = why.code;
  why.reason.copy(answer.u.reason, sizeof answer.u.reason - 1);
  return answer;
}

}  // namespace rocefs
