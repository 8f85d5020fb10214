// AckRequests: which packets of requests ask for an acknowledgement. Message ends do, unless the
// next message follows at once; so does each packet without which the sender would wait for ever,
// or learn too late. Reliable connections only; core thread.
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

  // Whether the next packet of the current request is to ask.
  bool wanted(const SendWqe& wqe, TimeNs now);
  // That packet is sent. Call it after SendWindow::packet_sent(), which tells whether it ended a
  // message.
  void packet_sent(bool asked, bool ends_message, TimeNs now) {
    since_request_ = asked ? 0 : since_request_ + 1;
    if (asked) {
      requested_at_ = now;
      last_unacked_end_ = kNoPsn;
    } else if (ends_message) {
      last_unacked_end_ = window_.next() - 1;
    }
  }
  // Whether packets are in flight of which none has asked.
  bool unasked() const { return since_request_ > 0; }
  // The end of the newest message that has not asked, since packets that were to follow it, and
  // ask, will not; none if there is no such message.
  std::optional<uint64_t> take_unasked_end();
  // The packet with this PSN will ask when it is sent once more.
  void force(uint64_t psn) { forced_psn_ = psn; }
  // Packets are sent again.
  void restart() {
    since_request_ = 0;
    last_unacked_end_ = kNoPsn;
  }
  void reset() {
    restart();
    forced_psn_ = kNoPsn;
  }

 private:
  // Packets in a row of which one asks.
  static constexpr uint32_t kMaxUnasked = 32;
  static constexpr uint64_t kNoPsn = ~uint64_t{0};

  bool wanted_early(const SendWqe& wqe, TimeNs now);
  bool is_followed();

  QpContext& qp_;
  SendWindow& window_;
  Congestion& congestion_;
  uint32_t since_request_ = 0;          // packets since the last one that asked
  TimeNs requested_at_ = 0;             // when that was sent, or the first packet of all in flight
  uint64_t last_unacked_end_ = kNoPsn;  // the last PSN of a message, since then
  uint64_t forced_psn_ = kNoPsn;
};

}  // namespace rocefs
