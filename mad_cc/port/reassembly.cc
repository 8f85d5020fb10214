#include "mad_cc/port/reassembly.h"

#include <algorithm>

namespace rocefs {

using namespace mad;

Reassembly::Key Reassembly::key_of(uint32_t agent, const Address& from, const Mad& mad) {
  return {agent,       mad.tid(), from.qpn, from.lid, mad.mgmt_class(), mad.class_version(),
          mad.method()};
}

bool Reassembly::TwoShares::take(const Key& key, size_t amount) {
  if (!agents_.take(key.agent, amount)) return false;
  if (sources_.take(key.lid, amount)) return true;
  agents_.give_back(key.agent, amount);
  return false;
}

void Reassembly::TwoShares::give_back(const Key& key, size_t amount) {
  if (amount == 0) return;
  agents_.give_back(key.agent, amount);
  sources_.give_back(key.lid, amount);
}

void Reassembly::TwoShares::clear() {
  agents_.clear();
  sources_.clear();
}

bool Reassembly::knows(uint32_t agent, const Address& from, const Mad& data) const {
  return transactions_.contains(key_of(agent, from, data));
}

Reassembly::Outcome Reassembly::receive(uint32_t agent, const Address& from, const Mad& data,
                                        bool expected, TimeNs now) {
  Key key = key_of(agent, from, data);
  auto at = transactions_.find(key);
  bool first = data.rmpp_segment() == 1;
  if (first && expected && at != transactions_.end() &&
      at->second.receiver.state() == RmppReceiver::State::kComplete) {
    erase(at);
    at = transactions_.end();
  }
  if (at == transactions_.end()) {
    bool later = !first && data.rmpp_segment() != 0 && (data.rmpp_flags() & kRmppFirst) == 0;
    if (later && data.rmpp_status() == kRmppOk) return {};  // of what is forgotten
    if (!messages_.take(key, 1)) return {rmpp_end(data, kRmppStop, kRmppResourcesExhausted), {}};
    RmppReceiver receiver(now);
    TimeNs deadline = receiver.deadline();
    at =
        transactions_.emplace(key, Transaction{std::move(receiver), from, ++last_number_, deadline})
            .first;
    under_way_.emplace(std::pair(deadline, last_number_), at);
  }
  Transaction& transaction = at->second;
  RmppReceiver& receiver = transaction.receiver;
  bool was_under_way = receiver.state() == RmppReceiver::State::kUnderWay;
  Outcome outcome{receiver.receive(data, now), {}};
  if (receiver.state() == RmppReceiver::State::kEnded) {
    erase(at);
  } else if (was_under_way && receiver.state() == RmppReceiver::State::kComplete) {
    outcome.message = receiver.take();
    (void)charge(at);  // nothing
    not_under_way(at);
    transaction.deadline = receiver.deadline();
    complete_.emplace(std::pair(transaction.deadline, transaction.number), at);
    if (complete_.size() > kMaxComplete) erase(complete_.begin()->second);
  } else if (!charge(at)) {
    outcome.reply = rmpp_end(data, kRmppStop, kRmppResourcesExhausted);
    erase(at);
  }
  return outcome;
}

void Reassembly::ended(uint32_t agent, const Address& from, const Mad& mad) {
  auto at = transactions_.find(key_of(agent, from, mad));
  if (at != transactions_.end()) erase(at);
}

bool Reassembly::charge(Transactions::iterator at) {
  size_t held = at->second.receiver.held();
  octets_.give_back(at->first, at->second.charged);
  at->second.charged = 0;
  if (held == 0) return true;
  if (!octets_.take(at->first, held)) return false;
  at->second.charged = held;
  return true;
}

void Reassembly::not_under_way(Transactions::iterator at) {
  const Transaction& transaction = at->second;
  if (under_way_.erase({transaction.deadline, transaction.number}) != 0)
    messages_.give_back(at->first, 1);
}

void Reassembly::erase(Transactions::iterator at) {
  const Transaction& transaction = at->second;
  octets_.give_back(at->first, transaction.charged);
  not_under_way(at);
  complete_.erase({transaction.deadline, transaction.number});
  transactions_.erase(at);
}

void Reassembly::remove_agent(uint32_t agent) {
  auto at = transactions_.lower_bound(Key{agent, 0, 0, 0, 0, 0, 0});
  while (at != transactions_.end() && at->first.agent == agent) erase(at++);
}

void Reassembly::clear() {
  under_way_.clear();
  complete_.clear();
  transactions_.clear();
  messages_.clear();
  octets_.clear();
}

TimeNs Reassembly::next_deadline() const {
  TimeNs next = under_way_.empty() ? kNever : under_way_.begin()->first.first;
  return complete_.empty() ? next : std::min(next, complete_.begin()->first.first);
}

std::vector<Reassembly::Expired> Reassembly::expire(TimeNs now) {
  std::vector<Expired> expired;
  while (!under_way_.empty() && under_way_.begin()->first.first <= now) {
    auto at = under_way_.begin()->second;
    std::optional<Mad> abort = at->second.receiver.expire();
    if (abort) expired.push_back({at->second.from, *abort});
    erase(at);
  }
  while (!complete_.empty() && complete_.begin()->first.first <= now)
    erase(complete_.begin()->second);
  return expired;
}

}  // namespace rocefs
