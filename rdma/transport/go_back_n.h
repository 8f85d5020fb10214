// GoBackN: retransmission of everything from a PSN on. It sets all parts of the requester that
// track packets in flight back to that PSN. Core thread.
#pragma once

#include <cstdint>

#include "rdma/transport/ack_requests.h"
#include "rdma/transport/congestion.h"
#include "rdma/transport/prefetch.h"
#include "rdma/transport/selective_repeat.h"
#include "rdma/transport/send_window.h"

namespace rocefs {

class GoBackN {
 public:
  GoBackN(QpContext& qp, SendWindow& window, AckRequests& ack_requests, SelectiveRepeat& selective,
          Prefetch& prefetch, Congestion& congestion)
      : qp_(qp),
        window_(window),
        ack_requests_(ack_requests),
        selective_(selective),
        prefetch_(prefetch),
        congestion_(congestion) {}

  // Makes `psn`, between unacked() and max_sent() of the window, the next to be sent. A request
  // that could not be sent is tried again in its turn.
  void rewind(uint64_t psn) {
    if (window_.state == RequesterState::kBlocked) {
      window_.current().failure = WcStatus::kSuccess;
      window_.state = RequesterState::kSending;
    }
    window_.rewind(psn);
    ack_requests_.restart();
    congestion_.note_retransmission();
    prefetch_.drop();
    selective_.drop();
    qp_.make_data_ready();
  }

  // Retransmits the last packet of the newest message that has not asked for an acknowledgement, to
  // ask now, because the packets that were to ask will not follow. Returns whether there was one.
  bool request_ack_again() {
    std::optional<uint64_t> end = ack_requests_.take_unasked_end();
    if (!end) return false;
    if (selective_.active()) {  // other missing packets keep their turn
      selective_.schedule(*end, *end + 1);
      return true;
    }
    ack_requests_.force(*end);
    rewind(*end);
    return true;
  }

 private:
  QpContext& qp_;
  SendWindow& window_;
  AckRequests& ack_requests_;
  SelectiveRepeat& selective_;
  Prefetch& prefetch_;
  Congestion& congestion_;
};

}  // namespace rocefs
