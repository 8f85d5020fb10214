// AckRequests: the choice of request packets that ask for an acknowledgement: the last packet of a
// message, unless the next message follows at once, and each packet without which the sender would
// wait for ever or learn too late. Reliable connections only; core thread.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "rdma/transport/congestion.h"
#include "rdma/transport/send_window.h"

namespace rocefs {

class AckRequests {
 public:
  AckRequests(QpContext& qp, SendWindow& window, Congestion& congestion)
      : qp_(qp), window_(window), congestion_(congestion) {}

  // Whether the next packet of the current request is to ask for an acknowledgement.
  bool wanted(const SendWqe& wqe, TimeNs now);
  // Records a sent packet. To be called after SendWindow::packet_sent(), which tells whether the
  // packet ended a message.
  void packet_sent(bool asked, bool ends_message, TimeNs now) {
    since_request_ = asked ? 0 : since_request_ + 1;
    if (asked) {
      requested_at_ = now;
      last_unacked_end_ = kNoPsn;
    } else if (ends_message) {
      last_unacked_end_ = window_.next() - 1;
    }
  }
  // Whether packets have been sent since the last one that asked.
  bool unasked() const { return since_request_ > 0; }
  // Last PSN of the newest message that has not asked because packets behind it were to ask, when
  // these will not be sent; nullopt if there is no such message.
  std::optional<uint64_t> take_unasked_end();
  // Makes the packet with this PSN ask when it is sent again.
  void force(uint64_t psn) { forced_psn_ = psn; }
  // Counts anew: packets are sent again.
  void restart() {
    since_request_ = 0;
    last_unacked_end_ = kNoPsn;
  }
  void reset() {
    restart();
    forced_psn_ = kNoPsn;
  }

 private:
  // Length of a run of packets, of which the last one asks.
  static constexpr uint32_t kMaxUnasked = 32;
  static constexpr uint64_t kNoPsn = ~uint64_t{0};

  bool wanted_early(const SendWqe& wqe, TimeNs now);
  bool is_followed();

  QpContext& qp_;
  SendWindow& window_;
  Congestion& congestion_;
  uint32_t since_request_ = 0;          // packets since the last one that asked
  TimeNs requested_at_ = 0;             // time of that one, or of the first packet in flight
  uint64_t last_unacked_end_ = kNoPsn;  // last PSN of a message that ended since then
  uint64_t forced_psn_ = kNoPsn;
};

}  // namespace rocefs
