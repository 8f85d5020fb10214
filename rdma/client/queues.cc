// Queues of a client: requests from its rings and completions into them.
#include <algorithm>
#include <cassert>

#include "core/base/clock.h"
#include "rdma/client/client.h"
#include "rdma/packet/operations.h"

namespace rocefs {
namespace {

constexpr int kServedAtOnce = 64;  // requests, before other queues are served

// The slots of a send queue, for the inline data that a client writes to them. No remote access.
class SlotMemory final : public DirectMemory {
 public:
  SlotMemory(std::shared_ptr<SharedMemory> memory, size_t offset, size_t size)
      : DirectMemory({memory->data() + offset, size}), memory_(std::move(memory)) {}

 private:
  const std::shared_ptr<SharedMemory> memory_;
};

}  // namespace

Completion* ClientCq::claim() {
  if (produced_ - load_acquire(page_->consumed) >= entries_) {
    constexpr uint32_t kCqError = 0;  // IBV_EVENT_CQ_ERR
    if (!std::exchange(overrun_, true)) async_events_ += client_.tell(kCqError, cookie_);
    return nullptr;
  }
  claimed_ = {};
  return &claimed_;
}

void ClientCq::publish(bool solicited) {
  const Completion& completion = claimed_;
  rocefs_cqe entry{};
  if (const ClientQp* qp = client_.completed(completion)) {  // frees slots before the entry shows
    entry.qp = qp->created().cookie;
    entry.released = qp->sends_released();
  }
  entry.wr_id = completion.wr_id;
  entry.status = wc_status_of(completion.status);
  entry.opcode = static_cast<uint32_t>(completion.opcode);
  entry.flags = (completion.grh != Grh::kNone ? ROCEFS_WC_GRH : 0) |
                (completion.has_immediate ? ROCEFS_WC_WITH_IMM : 0) |
                (completion.has_invalidated ? ROCEFS_WC_WITH_INV : 0);
  entry.byte_len = completion.byte_len;
  entry.immediate = completion.immediate;
  entry.qpn = completion.qpn;
  entry.source_qpn = completion.source_qpn;
  entry.l3_type = static_cast<uint32_t>(completion.grh);
  if (stamped_) entry.timestamp = static_cast<uint64_t>(monotonic_ns());
  auto* entries = memory_->at<rocefs_cqe>(ROCEFS_CQ_ENTRIES);
  std::memcpy(&entries[produced_ & (entries_ - 1)], &entry, sizeof entry);
  store_release(page_->produced, ++produced_);
  if (channel_ != 0) raise(solicited || completion.status != WcStatus::kSuccess);
}

// Either this thread sees that the client has armed the queue, or the client sees the entry.
void ClientCq::raise(bool solicited) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::atomic_ref armed(page_->armed);
  uint32_t how = armed.load(std::memory_order_relaxed);
  if (how == ROCEFS_ARMED_NO || (how == ROCEFS_ARMED_SOLICITED && !solicited)) return;
  armed.store(ROCEFS_ARMED_NO, std::memory_order_relaxed);
  completion_events_ += client_.raise(channel_, cookie_);
}

Result<void> ClientCq::resize(std::shared_ptr<SharedMemory> memory, uint32_t entries) {
  uint32_t consumed = load_acquire(page_->consumed);
  uint32_t held = produced_ - consumed;
  if (held > entries_ || held > entries) {
    return errorf(EINVAL, "{} completions do not fit in {} entries", held, entries);
  }
  auto* page = memory->at<rocefs_cq_page>(0);
  auto* from = memory_->at<rocefs_cqe>(ROCEFS_CQ_ENTRIES);
  auto* to = memory->at<rocefs_cqe>(ROCEFS_CQ_ENTRIES);
  for (uint32_t i = consumed; i != produced_; ++i) {
    std::memcpy(&to[i & (entries - 1)], &from[i & (entries_ - 1)], sizeof *to);
  }
  page->produced = produced_;
  page->consumed = consumed;
  page->armed = load_acquire(page_->armed);
  memory_ = std::move(memory);
  page_ = page;
  entries_ = entries;
  overrun_ = false;
  return {};
}

ClientSrq::ClientSrq(Client& client, std::shared_ptr<SharedMemory> memory,
                     const rocefs_created& layout, const rocefs_create_srq& wanted, uint32_t number,
                     uint32_t pd)
    : client_(client),
      memory_(std::move(memory)),
      wanted_(wanted),
      number_(number),
      pd_(pd),
      ring_(memory_->at<rocefs_queue>(0), memory_->data() + layout.receive_offset,
            layout.receive_entries),
      receives_(layout.receive_entries, pd) {
  receives_.set_source([this] { (void)serve(); });
}

bool ClientSrq::serve() {
  if (!ring_.sound()) return false;  // invalid counters: take no more requests
  int left = kServedAtOnce;
  for (rocefs_receive_wqe wqe; !ring_.empty() && !receives_.full(); --left) {
    if (left == 0) return true;
    ring_.take(wqe);
    [[maybe_unused]] Result<void> posted = receives_.post(receive_request_of(wqe, wanted_.max_sge));
    assert(posted);
  }
  return false;
}

void ClientSrq::set_limit(uint32_t limit) {
  limit_ = limit;
  constexpr uint32_t kLimitReached = 15;  // IBV_EVENT_SRQ_LIMIT_REACHED
  receives_.set_limit(limit, [this] {
    limit_ = 0;
    async_events_ += client_.tell(kLimitReached, wanted_.cookie);
  });
}

ClientQp::ClientQp(Client& client, std::shared_ptr<SharedMemory> memory,
                   const rocefs_created& layout, const rocefs_create_qp& wanted)
    : client_(client),
      memory_(std::move(memory)),
      wanted_(wanted),
      asked_by_(layout.entries),
      sends_(&memory_->at<rocefs_qp_page>(0)->send, memory_->data() + layout.send_offset,
             layout.entries),
      receives_(&memory_->at<rocefs_qp_page>(0)->receive, memory_->data() + layout.receive_offset,
                layout.receive_entries) {
  limits_.max_sge = wanted.max_send_sge;
  limits_.max_inline = layout.max_inline;
}

ClientQp::~ClientQp() = default;

Result<void> ClientQp::attach(Qp& qp, ClientSrq* srq, const rocefs_created& layout) {
  size_t size = layout.entries * sizeof(rocefs_send_wqe);
  auto slots = std::make_shared<SlotMemory>(memory_, layout.send_offset, size);
  Result<uint32_t> key = client_.device().memory().add(std::move(slots), 0, size, qp.pd(), 0);
  if (!key) return key.error();
  limits_.inline_key = *key;
  limits_.datagram = qp.type() == QpType::kUd;
  qp_ = &qp;
  srq_ = srq;
  if (!srq) {
    qp.receives().set_source([this] {
      if (qp_->receives_packets()) (void)serve_receives();
    });
  }
  return {};
}

void ClientQp::attach(std::shared_ptr<XrcTarget> target) {
  target_ = std::move(target);
  target_->add(*this);
  qp_ = &target_->qp();
}

bool ClientQp::serve() {
  if (!sends_.sound() || !receives_.sound()) {
    qp_->enter_error();
    return false;
  }
  bool more = serve_sends();
  return serve_receives() || more;
}

bool ClientQp::serve_sends() {
  bool takes = qp_->sends() || qp_->state() == QpState::kSqe || qp_->state() == QpState::kError;
  int left = kServedAtOnce;
  for (rocefs_send_wqe wqe; takes && !sends_.empty() && !qp_->requester().full(); --left) {
    if (left == 0) return true;
    sends_.take(wqe);
    uint64_t inline_offset = sends_.last_offset() + offsetof(rocefs_send_wqe, u);
    SendRequest request = send_request_of(client_.device(), wqe, limits_, inline_offset);
    if (wqe.flags & ROCEFS_SEND_COPIED) use_copied(request);
    asked_by_[sends_.slot_of_last()] = asked_ += request.sges.length();
    if (!request.malformed && qp_->post(request)) continue;
    request.malformed = true;  // fails in its turn
    request.op = SendOp::kSend;
    [[maybe_unused]] Result<void> posted = qp_->post(request);
    assert(posted);
  }
  return false;
}

// Uses the copied bytes of the request in the slot taken last. If they may not be read, or exceed
// the limit, the request is left as it is: it reads memory, or fails, in its turn. So it does where
// the program took an address of the region for one of its own, and copied other bytes.
void ClientQp::use_copied(SendRequest& request) {
  const MemoryTable& table = client_.device().memory();
  uint64_t length = request.sges.length();
  bool takes =
      send_op_info(request.op).has(ROCEFS_PAYLOAD) && length > 0 && length <= ROCEFS_MAX_COPIED;
  for (const Sge& part : request.sges.entries()) {
    const MemoryRegion* region =
        table.allow(part.lkey, qp_->pd(), qp_->number(), 0, part.address, part.length);
    takes = takes && region && !region->renamed;
  }
  if (!takes) return;
  uint64_t offset = sends_.last_offset() + offsetof(rocefs_send_wqe, u.copied);
  request.sges.clear();
  request.sges.add({offset, static_cast<uint32_t>(length), limits_.inline_key});
}

bool ClientQp::serve_receives() {
  bool takes = !srq_ && qp_->state() != QpState::kReset;
  int left = kServedAtOnce;
  for (rocefs_receive_wqe wqe; takes && !receives_.empty() && !qp_->receives().full(); --left) {
    if (left == 0) return true;
    receives_.take(wqe);
    [[maybe_unused]] Result<void> posted =
        qp_->post(receive_request_of(wqe, wanted_.max_receive_sge));
    assert(posted);
  }
  return false;
}

bool ClientQp::must_wake() {
  return moderation_.raise_event(asked_ - asked_by_[sends_.slot_of_released()]);
}

void ClientQp::release() {
  sends_.release_all_but(qp_->requester().queued());
  if (srq_) {
    srq_->release();
  } else {
    receives_.release_all_but(qp_->receives().size());
  }
}

void ClientQp::drop() {
  sends_.drop();
  receives_.drop();
}

// Bounded: a client that goes on posting is not waited for.
void ClientQp::flush() {
  qp_->enter_error();
  uint32_t turns = std::max(sends_.entries(), receives_.entries()) / kServedAtOnce + 1;
  while (serve() && --turns > 0) {
  }
}

void ClientQp::destroy() {
  if (target_) {
    target_->remove(*this);
    target_.reset();
    qp_ = nullptr;
    return;
  }
  Device& device = client_.device();
  qp_->receives().set_source(nullptr);
  device.destroy_qp(*qp_);
  (void)device.memory().remove(limits_.inline_key);
  qp_ = nullptr;
}

void ClientQp::qp_event(QpEvent event) {
  constexpr uint32_t kTypes[] = {1, 2, 3, 4, 5, 16};  // ibv_event_type, in the order of QpEvent
  async_events_ += client_.tell(kTypes[static_cast<size_t>(event)], wanted_.cookie);
}

}  // namespace rocefs
