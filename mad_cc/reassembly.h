// Reassembly: the messages that arrive at a port in RMPP segments, for agents whose RMPP the port
// does: as many and as long as there is room for. Core thread.
#pragma once

#include <map>
#include <vector>

#include "mad_cc/rmpp_receiver.h"

namespace rocefs {

class Reassembly {
 public:
  static constexpr size_t kMaxUnderWay = 256;      // messages; more are stopped
  static constexpr size_t kMaxComplete = 4096;     // remembered for the sake of lost ACKs
  static constexpr size_t kMaxOctets = 64u << 20;  // of all that are under way

  struct Outcome {
    std::optional<mad::Mad> reply;        // to the peer
    std::optional<mad::Message> message;  // it is complete
  };
  // A DATA segment of RMPP version 1. `expected`: an answer of its TID is, so the first segment of
  // one is no duplicate of a message that is complete: the TID is used again.
  Outcome receive(uint32_t agent, const mad::Address& from, const mad::Mad& data, bool expected,
                  TimeNs now);
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
  size_t octets() const { return held_; }

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
  };
  using Transactions = std::map<Key, Transaction>;
  using Deadlines = std::map<std::pair<TimeNs, uint64_t>, Transactions::iterator>;

  static Key key_of(uint32_t agent, const mad::Address& from, const mad::Mad& mad);
  void erase(Transactions::iterator at);

  Transactions transactions_;
  Deadlines under_way_, complete_;
  size_t held_ = 0;  // octets
  uint64_t last_number_ = 0;
};

}  // namespace rocefs
