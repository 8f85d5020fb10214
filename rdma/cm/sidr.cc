#include "rdma/cm/sidr.h"

#include <cerrno>

#include "rdma/cm/connection.h"

namespace rocefs {
namespace {

// Time-out after which a question is retransmitted.
constexpr TimeNs kPatience = (TimeNs{4096} << CmConnection::kResponseTimeout) +
                             (TimeNs{8192} << CmConnection::kPacketLifeTime);

}  // namespace

Sidr::Sidr(CmHost& host, Port& port, const AddressVector& path, uint32_t request_id)
    : host_(host),
      port_(port),
      path_(path),
      request_id_(request_id),
      timer_(event_of<&Sidr::on_time>(this)) {}

void Sidr::ask(cm::SidrReq req, SidrUser& user) {
  user_ = &user;
  tid_ = host_.next_tid();
  req.request_id = request_id_;
  req.pkey = 0xffff;
  req_ = req;
  retries_left_ = CmConnection::kMaxRetries;
  host_.transmit(port_, path_, tid_, req_, false);
  host_.scheduler().after(timer_, kPatience);
}

void Sidr::on_time(TimeNs) {
  if (retries_left_ == 0) {
    if (user_) user_->unanswered();
    return;
  }
  --retries_left_;
  host_.transmit(port_, path_, tid_, req_, true);
  host_.scheduler().after(timer_, kPatience);
}

void Sidr::take_request(uint64_t tid, const cm::SidrReq& req) {
  asked_ = true;
  tid_ = tid;
  req_ = req;
}

Result<void> Sidr::answer(cm::SidrRep rep) {
  if (!asked_ || rep_) return Error{EINVAL, "there is no question to answer"};
  rep.request_id = request_id_;
  rep.service_id = req_.service_id;
  rep_ = rep;
  host_.transmit(port_, path_, tid_, rep, false);
  return {};
}

void Sidr::answer_again() {
  if (rep_) host_.transmit(port_, path_, tid_, *rep_, true);
}

void Sidr::abandon() {
  user_ = nullptr;
  if (asked_ && !rep_) {
    cm::SidrRep refusal;
    refusal.status = cm::kSidrReject;
    (void)!answer(refusal);
  }
  host_.release(*this);
}

void Sidr::receive(const cm::SidrRep& rep) {
  if (asked_ || rep_) return;
  rep_ = rep;
  host_.scheduler().cancel(timer_);
  if (user_) user_->answered(rep);
}

}  // namespace rocefs
