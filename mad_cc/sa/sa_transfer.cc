#include "mad_cc/sa/sa_transfer.h"

#include <algorithm>

namespace rocefs::sa {

Transfer::Transfer(Server& server, Scheduler& scheduler, const mad::Address& to, mad::Message table)
    : server_(server),
      scheduler_(scheduler),
      to_(to),
      tid_(mad::first_mad(table).tid()),
      give_up_(scheduler.now() + kMaxDuration),
      sender_(std::move(table)),
      run_(event_of<&Transfer::run>(this)) {
  scheduler_.at(run_, scheduler_.now());
}

void Transfer::receive(const mad::Mad& mad) {
  sender_.receive(mad);
  scheduler_.at(run_, scheduler_.now());
}

void Transfer::run(TimeNs now) {
  if (!sender_.ended() && now >= give_up_) {
    server_.transmit(to_, mad::rmpp_end(mad::first_mad(sender_.message()), mad::kRmppAbort,
                                        mad::kRmppTotalTimeTooLong, true));
    return server_.ended(*this);
  }
  for (unsigned i = 0; i < kBurst; ++i) {
    auto segment = sender_.next(now);
    if (!segment) {
      if (sender_.ended()) return server_.ended(*this);
      scheduler_.at(run_, std::min(sender_.deadline(), give_up_));
      return;
    }
    server_.transmit(to_, *segment);
  }
  scheduler_.at(run_, now);
}

}  // namespace rocefs::sa
