// Transfer: sends a table to one client by RMPP, a few segments at a time. Core thread.
#pragma once

#include "core/loop/scheduler.h"
#include "mad_cc/mad/mad.h"
#include "mad_cc/mad/rmpp_sender.h"

namespace rocefs::sa {

class Transfer {
 public:
  class Server {
   public:
    virtual ~Server() = default;
    virtual void transmit(const mad::Address& to, const mad::Mad& mad) = 0;
    // Reports the end; the transfer may be destroyed from within this call.
    virtual void ended(Transfer& transfer) = 0;
  };
  // `server` and `scheduler` outlive the transfer. The first segment is sent in a separate event.
  Transfer(Server& server, Scheduler& scheduler, const mad::Address& to, mad::Message table);

  // Takes an ACK, STOP or ABORT of the client with its TID.
  void receive(const mad::Mad& mad);
  const mad::Address& to() const { return to_; }
  uint64_t tid() const { return tid_; }
  size_t octets() const { return sender_.message().size(); }

  // Time limit for a client that acknowledges as slowly as it may (13.6.3).
  static constexpr TimeNs kMaxDuration = 120 * kSecond;
  // Segments per event: a client's window may be as wide as the table.
  static constexpr unsigned kBurst = 64;

 private:
  void run(TimeNs now);

  Server& server_;
  Scheduler& scheduler_;
  const mad::Address to_;
  const uint64_t tid_;
  const TimeNs give_up_;
  mad::RmppSender sender_;
  Event run_;
};

}  // namespace rocefs::sa
