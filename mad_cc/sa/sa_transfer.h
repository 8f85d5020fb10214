// Transfer: a table on its way to one client by RMPP, a few segments at a time. Core thread.
#pragma once

#include "core/loop/scheduler.h"
#include "mad_cc/mad/mad.h"
#include "mad_cc/mad/rmpp_sender.h"

namespace rocefs::sa {

class Transfer {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void transmit(const mad::Address& to, const mad::Mad& mad) = 0;
    // It may be destroyed within this.
    virtual void ended(Transfer& transfer) = 0;
  };
  // `owner` and `scheduler` outlive it. The first segment goes out in an event of its own.
  Transfer(Owner& owner, Scheduler& scheduler, const mad::Address& to, mad::Message table);

  // An ACK, STOP or ABORT of its client with its TID.
  void receive(const mad::Mad& mad);
  const mad::Address& to() const { return to_; }
  uint64_t tid() const { return tid_; }
  size_t octets() const { return sender_.message().size(); }

  // A client that acknowledges as slowly as it may is given up after that: 13.6.3.
  static constexpr TimeNs kLongest = 120 * kSecond;
  // Segments in one event: a client's window may be as wide as the table.
  static constexpr unsigned kBurst = 64;

 private:
  void run(TimeNs now);

  Owner& owner_;
  Scheduler& scheduler_;
  const mad::Address to_;
  const uint64_t tid_;
  const TimeNs give_up_;
  mad::RmppSender sender_;
  Event run_;
};

}  // namespace rocefs::sa
