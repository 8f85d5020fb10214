// Sidr: a question of one communication manager to another and its answer: which queue pair serves
// datagrams for a service (SIDR_REQ and SIDR_REP, IBTA volume 1, 12.11).
//
// On the core's thread. CmManager makes them and lets them go.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/result.h"
#include "core/loop/scheduler.h"
#include "rdma/cm/host.h"
#include "rdma/cm/message.h"
#include "rdma/packet/verbs.h"

namespace rocefs {

// Who asks. It may let go of the question from within a call.
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

  // The near end asks. `req` but for the id.
  void ask(cm::SidrReq req, SidrUser& user);
  // The near end was asked, and answers. EINVAL when it has. `rep` but for the id and the service.
  void take_request(uint64_t tid, const cm::SidrReq& req);
  Result<void> answer(cm::SidrRep rep);
  // Again, to a question that comes again.
  void answer_again();
  bool has_answered() const { return rep_.has_value(); }

  // Its user goes. Who was asked and has not answered refuses.
  void abandon();
  void receive(const cm::SidrRep& rep);

 private:
  void on_time(TimeNs now);

  CmHost& host_;
  Port& port_;
  const AddressVector path_;
  const uint32_t request_id_;
  SidrUser* user_ = nullptr;  // of who asks
  bool asked_ = false;        // by the far end
  uint64_t tid_ = 0;
  uint8_t retries_left_ = 0;
  cm::SidrReq req_;
  std::optional<cm::SidrRep> rep_;
  Event timer_;
};

}  // namespace rocefs
