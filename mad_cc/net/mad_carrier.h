// MadReceiver and MadCarrier: the interface between the MAD layer of a port, or the subnet
// administrator, and the network. Core thread.
#pragma once

#include "mad_cc/mad/mad.h"

namespace rocefs {

class MadReceiver {
 public:
  virtual ~MadReceiver() = default;
  // Takes a MAD; `from.lid` is the sender's LID.
  virtual void receive(const mad::Address& from, const mad::Mad& mad) = 0;
};

class MadCarrier {
 public:
  virtual ~MadCarrier() = default;
  // Delivers `mad` once or loses it. Does not call MadReceiver::receive() from within.
  virtual void transmit(MadReceiver& from, const mad::Address& to, const mad::Mad& mad) = 0;
};

}  // namespace rocefs
