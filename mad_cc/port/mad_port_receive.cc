// Receive path of a port: the agent a MAD is for, and RMPP.
#include "mad_cc/mad/answer.h"
#include "mad_cc/port/mad_port.h"

namespace rocefs {

using namespace mad;

void MadPort::receive(const Address& from, const Mad& mad) {
  uint32_t id = agents_.receiver_of(mad);
  if (id == 0) {
    if (is_refusable(mad)) reply(from, answer_to(mad, kBadMethodAttribute));
    return;
  }
  bool segment = has_rmpp(mad.mgmt_class()) && mad.rmpp_active();
  if (segment && agents_.find(id)->port_rmpp())
    receive_segment(id, from, mad);
  else
    deliver(id, from, mad, message_of(mad));
}

void MadPort::reply(const Address& from, const Mad& mad) {
  Address to = from;
  to.qkey = kQkey;
  transmit_mad(to, mad);
}

void MadPort::deliver(uint32_t id, const Address& from, const Mad& mad, Message message) {
  MadAgents::Agent* agent = agents_.find(id);
  MadUser& user = *agent->user;
  std::optional<uint64_t> request;
  if (mad.is_response()) {
    if (Send* send = match(id, from.lid, mad)) {
      request = send->send.request;
      forget(*send);
      arm_timer();
    } else if (agent->port_rmpp() || !has_rmpp(mad.mgmt_class()) || !mad.rmpp_active()) {
      return;  // too late, or nobody asked
    }
  }
  user.received(id, request, from, std::move(message));
}

void MadPort::receive_segment(uint32_t agent, const Address& from, const Mad& mad) {
  if (mad.rmpp_version() != kRmppVersion || mad.rmpp_type() != kRmppData)
    return receive_answer_to_segments(agent, from, mad);
  bool expected = match(agent, from.lid, mad) != nullptr;
  // Unsolicited segments are requests only. A complete message is acknowledged again all the same.
  if (mad.is_response() && !expected && !reassembly_.knows(agent, from, mad)) return;
  Reassembly::Outcome outcome = reassembly_.receive(agent, from, mad, expected, scheduler_.now());
  arm_timer();
  if (outcome.reply) reply(from, *outcome.reply);
  if (outcome.message) {
    Mad first = first_mad(*outcome.message);
    deliver(agent, from, first, std::move(*outcome.message));
  }
}

void MadPort::receive_answer_to_segments(uint32_t agent, const Address& from, const Mad& mad) {
  uint8_t fault = RmppSender::fault(mad);
  bool ends = mad.rmpp_type() == kRmppStop || mad.rmpp_type() == kRmppAbort;
  if (fault == kRmppOk && ends) reassembly_.ended(agent, from, mad);
  Send* send = match(agent, from.lid, mad);
  if (!send || !send->segments) {
    if (fault != kRmppOk) reply(from, rmpp_end(mad, kRmppAbort, fault));
    return arm_timer();
  }
  if (!send->segments->ended()) {
    send->segments->receive(mad);
    transmit_segments(*send);
  }
  // Direction change of a double-sided transaction (13.6): the whole request is there, and its
  // sender is to receive now. Repeated on request.
  if (send->phase == Phase::kAwaiting && mad.rmpp_type() == kRmppAck) {
    Mad turn = rmpp_end(mad, kRmppAck, kRmppOk);
    turn.set_rmpp(kRmppAck, kRmppActive, kRmppOk, 0, 1);
    reply(from, turn);
  }
  arm_timer();
}

}  // namespace rocefs
