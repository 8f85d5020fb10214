// Reassembly: the messages that arrive at a port in RMPP segments, for agents whose RMPP the port
// does: as many and as long as there is room for, of which each agent and each source has its
// share. Core thread.
#pragma once

#include <map>
#include <vector>

#include "mad_cc/mad/client_shares.h"
#include "mad_cc/mad/rmpp_receiver.h"

namespace rocefs {

class Reassembly {
 public:
  // Messages and octets that are under way; more are stopped, and those of an agent or a source
  // that has its share already: half of them, if it is alone.
  static constexpr size_t kMaxUnderWay = 256;
  static constexpr size_t kMaxOctets = 64u << 20;
  static constexpr size_t kMaxComplete = 4096;  // remembered for the sake of lost ACKs

  struct Outcome {
    std::optional<mad::Mad> reply;        // to the peer
    std::optional<mad::Message> message;  // it is complete
  };
  // A DATA segment of RMPP version 1. `expected`: an answer of its TID is, so the first segment of
  // one is no duplicate of a message that is complete: the TID is used again.
  Outcome receive(uint32_t agent, const mad::Address& from, const mad::Mad& data, bool expected,
                  TimeNs now);
  // Whether a message of that transaction is under way or remembered.
  bool knows(uint32_t agent, const mad::Address& from, const mad::Mad& data) const;
  // The peer has ended it with STOP or ABORT. Unknown ones are ignored.
  void ended(uint32_t agent, const mad::Address& from, const mad::Mad& mad);
  void remove_agent(uint32_t agent);
  void clear();

  TimeNs next_deadline() const;
  struct Expired {
    mad::Address to;
    mad::Mad abort;
  };
  // What is to be said of messages that took too long.
  std::vector<Expired> expire(TimeNs now);
  // Messages under way, and complete ones that are remembered.
  size_t size() const { return transactions_.size(); }
  size_t octets() const { return octets_.taken(); }

 private:
  struct Key {
    uint32_t agent;
    uint64_t tid;
    uint32_t qpn;
    uint16_t lid;
    uint8_t mgmt_class, class_version, method;
    auto operator<=>(const Key&) const = default;
  };
  struct Transaction {
    mad::RmppReceiver receiver;
    mad::Address from;
    uint64_t number;
    TimeNs deadline;
    size_t charged = 0;  // octets
  };
  // Both its agent's and its source's.
  class TwoShares {
   public:
    explicit TwoShares(size_t all) : agents_(all), sources_(all) {}
    [[nodiscard]] bool take(const Key& key, size_t amount);
    void give_back(const Key& key, size_t amount);
    size_t taken() const { return agents_.taken(); }
    void clear();

   private:
    mad::ClientShares agents_, sources_;
  };
  using Transactions = std::map<Key, Transaction>;
  using Deadlines = std::map<std::pair<TimeNs, uint64_t>, Transactions::iterator>;

  static Key key_of(uint32_t agent, const mad::Address& from, const mad::Mad& mad);
  // False, and what it holds is not paid for, if that is more than its share.
  [[nodiscard]] bool charge(Transactions::iterator at);
  void not_under_way(Transactions::iterator at);
  void erase(Transactions::iterator at);

  Transactions transactions_;
  Deadlines under_way_, complete_;
  TwoShares messages_{kMaxUnderWay}, octets_{kMaxOctets};
  uint64_t last_number_ = 0;
};

}  // namespace rocefs
