// MadSends: sends of a port's agents whose end has not been reported, by id, by the answer that
// they wait for and by deadline. Core thread.
#pragma once

#include <memory>
#include <set>
#include <unordered_map>

#include "mad_cc/mad/rmpp_sender.h"
#include "mad_cc/port/mad_user.h"

namespace rocefs {

class MadSends {
 public:
  enum class Phase : uint8_t {
    kQueued,        // by the limiter, or nowhere yet
    kTransmitting,  // in segments
    kAwaiting,      // an answer
    kEnded,         // its user is to be told
  };
  struct Entry {
    uint64_t id;
    uint32_t agent;
    MadSend send;
    size_t octets;  // of its message
    mad::Mad mad;   // the first of the message, or all of it
    Phase phase = Phase::kQueued;
    bool limited = false;  // the limiter knows of it
    uint32_t retries_left = 0;
    TimeNs deadline = kNever;
    std::unique_ptr<mad::RmppSender> segments;  // of a message that goes by RMPP
    MadUser::End end = MadUser::End::kSent;
  };

  Entry& add(uint32_t agent, MadSend send);
  Entry* find(uint64_t id);
  void erase(Entry& entry);
  void clear();
  size_t size() const { return entries_.size(); }
  // Returns the size of all messages.
  size_t octets() const { return octets_; }

  void set_deadline(Entry& entry, TimeNs deadline);
  TimeNs next_deadline() const { return deadlines_.empty() ? kNever : deadlines_.begin()->first; }
  // Returns the send with the earliest deadline up to `now`, the oldest first; null: none.
  Entry* due(TimeNs now);

  // Makes the send visible to match().
  void expect_answer(Entry& entry);
  void expect_nothing(Entry& entry);
  // Returns the send that `mad` from `lid` answers, also by RMPP, with the rules of
  // ib_find_send_mad(): same TID and class; a response matches a request and the other way round;
  // for a response, the same LID too. The oldest if several match; null: none.
  Entry* match(uint32_t agent, uint16_t lid, const mad::Mad& mad);
  // Returns all ids, oldest first.
  std::vector<uint64_t> ids() const;

 private:
  struct AnswerKey {
    uint64_t tid;
    uint32_t agent;
    uint16_t lid;
    uint8_t mgmt_class;
    bool response;
    uint64_t id;
    auto operator<=>(const AnswerKey&) const = default;
  };
  static AnswerKey key_of(const Entry& entry);

  std::unordered_map<uint64_t, Entry> entries_;
  std::set<AnswerKey> answers_;
  std::set<std::pair<TimeNs, uint64_t>> deadlines_;
  uint64_t last_id_ = 0;
  size_t octets_ = 0;
};

}  // namespace rocefs
