#include "mad_cc/umad/umad_client.h"

#include <algorithm>
#include <cerrno>

#include "mad_cc/mad/rmpp.h"

namespace rocefs {

Shares::Share UmadRoom::take(size_t octets, bool asked_for) {
  size_t part = asked_for ? 1 : 2;
  if (messages_.load() >= kMessages / part) return nullptr;
  if (octets > kOctets / part || octets_.load() > kOctets / part - octets) return nullptr;
  Shares::Share share = shares_->unread.take(user_.uid, user_.privileged, octets);
  if (!share) return nullptr;
  messages_.fetch_add(1);
  octets_.fetch_add(octets);
  return share;
}

Shares::Share UmadRoom::take_send(size_t octets) {
  return shares_->sends.take(user_.uid, user_.privileged, octets);
}

void UmadRoom::give(const UmadArrival& read) {
  if (!read.received) return give_request();
  messages_.fetch_sub(1);
  octets_.fetch_sub(read.message.size());
}

size_t UmadClient::Hash::operator()(const Identity& identity) const {
  uint64_t rest = uint64_t{identity.mgmt_class} << 32 | uint64_t{identity.response} << 16;
  return std::hash<uint64_t>()(identity.tid * 0x9e3779b97f4a7c15 ^ (rest | identity.lid));
}

UmadClient::UmadClient(MadPort& port, std::shared_ptr<UmadRoom> room, Arrived arrived,
                       Dropped dropped)
    : port_(port),
      room_(std::move(room)),
      arrived_(std::move(arrived)),
      dropped_(std::move(dropped)) {}

Result<uint32_t> UmadClient::add_agent(MadRegistration registration) {
  auto free = std::find(agents_.begin(), agents_.end(), std::nullopt);
  if (free == agents_.end())
    return errorf(ENOMEM, "an open file has at most {} agents", umad::kMaxAgents);
  registration.max_sends = UmadRoom::kRequests;
  Result<uint32_t> id = port_.add_agent(registration, *this);
  if (!id) return id;
  *free = Agent{*id, registration};
  return static_cast<uint32_t>(free - agents_.begin());
}

Result<void> UmadClient::remove_agent(uint32_t number) {
  if (number >= agents_.size() || !agents_[number])
    return errorf(EINVAL, "no such agent: {}", number);
  port_.remove_agent(agents_[number]->id);
  agents_[number].reset();
  std::vector<uint64_t> theirs;
  for (const auto& [request, sent] : sent_) {
    if (sent.number == number) theirs.push_back(request);
  }
  for (uint64_t request : theirs) {
    take_sent(request);
    room_->give_request();
  }
  return {};
}

void UmadClient::remove_agents() {
  for (uint32_t number = 0; number < agents_.size(); ++number) {
    if (agents_[number]) (void)remove_agent(number);
  }
}

Result<void> UmadClient::send(umad::Request request) {
  const umad::Header& header = request.header;
  if (header.agent >= agents_.size() || !agents_[header.agent])
    return errorf(EIO, "no such agent: {}", header.agent);
  const Agent& agent = *agents_[header.agent];
  mad::Message& message = request.message;
  mad::Mad mad = mad::first_mad(message);
  bool port_rmpp = agent.registration.rmpp_version != 0 && !agent.registration.user_rmpp;
  bool has_rmpp = mad::has_rmpp(mad.mgmt_class());
  // RMPP header of ib_create_send_mad() for an agent whose RMPP the port does: DATA if it is
  // active, else none. ib_umad_write() copies none; OpenSM writes no type.
  if (port_rmpp && has_rmpp) {
    bool active = mad.rmpp_active();
    std::fill(message.begin() + 24, message.begin() + 36, uint8_t{0});
    if (active) {
      message[24] = mad::kRmppVersion;
      message[25] = mad::kRmppData;
      message[26] = mad::kRmppActive;
    }
  }
  if (!(has_rmpp && mad.rmpp_active())) message.resize(std::max(message.size(), mad::kMadSize));
  if (!mad.is_response())
    mad.set_tid(uint64_t{MadPort::high_tid(agent.id)} << 32 | (mad.tid() & 0xffffffff));
  Identity identity{mad.tid(), mad.mgmt_class(), mad.is_response(),
                    mad.is_response() ? request.to.lid : uint16_t{0}};
  // Exception: segments of a user's own RMPP share one TID.
  bool own_segment = !port_rmpp && has_rmpp && mad.rmpp_active();
  if (!own_segment && identities_.contains(identity))
    return errorf(EINVAL, "a send with TID {:#x} is in progress", mad.tid());
  if (!room_->has_request()) return Error{ENOMEM, "too many requests are in progress or unread"};
  size_t octets = message.size();
  if (octets > UmadRoom::kSendOctets - octets_)
    return errorf(ENOMEM, "messages of {} octets are in progress", octets_);
  Shares::Share share = room_->take_send(octets);
  if (!share) return Error{ENOMEM, "the user's share of messages in progress or unread is used up"};
  Sent sent{header.agent, identity, header, octets, std::move(share), {}};
  std::copy_n(mad.bytes.begin(), sent.mad.size(), sent.mad.begin());
  uint64_t name = ++last_request_;
  MadSend send{.request = name,
               .to = request.to,
               .timeout_ms = header.timeout_ms,
               .retries = header.retries,
               .message = std::move(message)};
  if (Result<void> done = port_.send(agent.id, std::move(send)); !done) return done;
  room_->take_request();
  octets_ += octets;
  ++identities_[identity];
  sent_.emplace(name, std::move(sent));
  return {};
}

std::optional<UmadClient::Sent> UmadClient::take_sent(uint64_t request) {
  auto found = sent_.find(request);
  if (found == sent_.end()) return std::nullopt;
  Sent sent = std::move(found->second);
  sent_.erase(found);
  octets_ -= sent.octets;
  auto identity = identities_.find(sent.identity);
  if (--identity->second == 0) identities_.erase(identity);
  return sent;
}

std::optional<uint32_t> UmadClient::number_of(uint32_t agent) const {
  for (uint32_t number = 0; number < agents_.size(); ++number) {
    if (agents_[number] && agents_[number]->id == agent) return number;
  }
  return std::nullopt;
}

void UmadClient::received(uint32_t agent, std::optional<uint64_t> request, const mad::Address& from,
                          mad::Message message) {
  std::optional<uint32_t> number = number_of(agent);
  std::optional<Sent> sent;
  if (request) sent = take_sent(*request);
  if (!number) {
    if (sent) room_->give_request();
    return;
  }
  Shares::Share share = room_->take(message.size(), request.has_value());
  if (!share) {
    dropped_();
    if (sent) deliver_unanswered(*sent);
    return;
  }
  if (sent) room_->give_request();
  UmadArrival arrival{umad::received_from(from), std::move(message), true, std::move(share)};
  arrival.header.agent = *number;
  arrived_(std::move(arrival));
}

// Reports only sends without an answer, as send_handler().
void UmadClient::ended(uint32_t, uint64_t request, End end) {
  std::optional<Sent> sent = take_sent(request);
  if (!sent) return;
  if (end == End::kTimedOut || end == End::kExpired) return deliver_unanswered(*sent);
  room_->give_request();
}

// Delivers the request as not answered. Its place in the room is given back when this is read.
void UmadClient::deliver_unanswered(const Sent& sent) {
  UmadArrival arrival{sent.header, mad::Message(sent.mad.begin(), sent.mad.end()), false,
                      sent.share};
  arrival.header.status = ETIMEDOUT;
  arrived_(std::move(arrival));
}

}  // namespace rocefs
