// Sidr: a question from one communication manager to another, and its answer: the queue pair that
// serves datagrams for a service (SIDR_REQ and SIDR_REP, IBTA volume 1, 12.11).
//
// Core thread. Made and freed by CmManager.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/result.h"
#include "core/loop/scheduler.h"
#include "rdma/cm/host.h"
#include "rdma/cm/message.h"
#include "rdma/packet/verbs.h"

namespace rocefs {

// User of a question. May abandon the question from within a call.
class SidrUser {
 public:
  virtual ~SidrUser() = default;
  virtual void answered(const cm::SidrRep& rep) = 0;
  virtual void unanswered() = 0;
};

class Sidr {
 public:
  Sidr(CmHost& host, Port& port, const AddressVector& path, uint32_t request_id);
  Sidr(const Sidr&) = delete;
  Sidr& operator=(const Sidr&) = delete;

  Port& port() const { return port_; }
  const AddressVector& path() const { return path_; }
  uint32_t request_id() const { return request_id_; }
  const cm::SidrReq& request() const { return req_; }

  // Active side: sends the question. `req` has all but the id.
  void ask(cm::SidrReq req, SidrUser& user);
  // Passive side: takes the question, then answers it. EINVAL for a second answer. `rep` has all
  // but the id and the service.
  void take_request(uint64_t tid, const cm::SidrReq& req);
  Result<void> answer(cm::SidrRep rep);
  // Answers a retransmitted question.
  void answer_again();
  bool has_answered() const { return rep_.has_value(); }

  // The user leaves. A received question without an answer is refused.
  void abandon();
  void receive(const cm::SidrRep& rep);

 private:
  void on_time(TimeNs now);

  CmHost& host_;
  Port& port_;
  const AddressVector path_;
  const uint32_t request_id_;
  SidrUser* user_ = nullptr;  // active side
  bool asked_ = false;        // passive side
  uint64_t tid_ = 0;
  uint8_t retries_left_ = 0;
  cm::SidrReq req_;
  std::optional<cm::SidrRep> rep_;
  Event timer_;
};

}  // namespace rocefs
