// Reassembly: messages that arrive at a port in RMPP segments, for agents whose RMPP the port does.
// Bounded in number and size; each agent and each source has a share. Core thread.
#pragma once

#include <map>
#include <vector>

#include "mad_cc/mad/client_shares.h"
#include "mad_cc/mad/rmpp_receiver.h"

namespace rocefs {

class Reassembly {
 public:
  // Limits of incomplete messages and their octets. More are stopped, also those of an agent or a
  // source beyond its share, which is half for a single one.
  static constexpr size_t kMaxUnderWay = 256;
  static constexpr size_t kMaxOctets = 64u << 20;
  static constexpr size_t kMaxComplete = 4096;  // remembered for the sake of lost ACKs

  struct Outcome {
    std::optional<mad::Mad> reply;        // to the peer
    std::optional<mad::Message> message;  // it is complete
  };
  // Takes a DATA segment of RMPP version 1. `expected`: a send waits for an answer with its TID, so
  // a first segment starts a new message even if the TID is that of a complete one.
  Outcome receive(uint32_t agent, const mad::Address& from, const mad::Mad& data, bool expected,
                  TimeNs now);
  // Returns whether a message of that transaction is incomplete or remembered.
  bool knows(uint32_t agent, const mad::Address& from, const mad::Mad& data) const;
  // Forgets a message that the peer has ended with STOP or ABORT. Ignores unknown ones.
  void ended(uint32_t agent, const mad::Address& from, const mad::Mad& mad);
  void remove_agent(uint32_t agent);
  void clear();

  TimeNs next_deadline() const;
  struct Expired {
    mad::Address to;
    mad::Mad abort;
  };
  // Returns the ABORTs of messages that took too long.
  std::vector<Expired> expire(TimeNs now);
  // Returns the number of incomplete and of remembered messages.
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
  // Shares of a message's agent and of its source.
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
  // Charges the message's memory. Returns false, and charges nothing, beyond the share.
  [[nodiscard]] bool charge(Transactions::iterator at);
  void not_under_way(Transactions::iterator at);
  void erase(Transactions::iterator at);

  Transactions transactions_;
  Deadlines under_way_, complete_;
  TwoShares messages_{kMaxUnderWay}, octets_{kMaxOctets};
  uint64_t last_number_ = 0;
};

}  // namespace rocefs
