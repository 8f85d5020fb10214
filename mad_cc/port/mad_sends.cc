#include "mad_cc/port/mad_sends.h"

#include <algorithm>

namespace rocefs {

using namespace mad;

namespace {

bool has_response_bit(const Mad& mad) {
  return (mad.method() & kResponseBit) != 0;
}

}  // namespace

MadSends::Entry& MadSends::add(uint32_t agent, MadSend send) {
  Entry& entry = entries_[++last_id_];
  entry.id = last_id_;
  entry.agent = agent;
  entry.mad = first_mad(send.message);
  entry.octets = send.message.size();
  octets_ += entry.octets;
  entry.retries_left = send.retries;
  entry.send = std::move(send);
  return entry;
}

MadSends::Entry* MadSends::find(uint64_t id) {
  auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second;
}

void MadSends::erase(Entry& entry) {
  set_deadline(entry, kNever);
  expect_nothing(entry);
  octets_ -= entry.octets;
  entries_.erase(entry.id);
}

void MadSends::clear() {
  entries_.clear();
  octets_ = 0;
  answers_.clear();
  deadlines_.clear();
}

void MadSends::set_deadline(Entry& entry, TimeNs deadline) {
  if (entry.deadline != kNever) deadlines_.erase({entry.deadline, entry.id});
  entry.deadline = deadline;
  if (deadline != kNever) deadlines_.insert({deadline, entry.id});
}

MadSends::Entry* MadSends::due(TimeNs now) {
  if (next_deadline() == kNever || next_deadline() > now) return nullptr;
  return find(deadlines_.begin()->second);
}

MadSends::AnswerKey MadSends::key_of(const Entry& entry) {
  bool response = has_response_bit(entry.mad);
  uint16_t lid = response ? entry.send.to.lid : uint16_t{0};
  return {entry.mad.tid(), entry.agent, lid, entry.mad.mgmt_class(), response, entry.id};
}

void MadSends::expect_answer(Entry& entry) {
  answers_.insert(key_of(entry));
}
void MadSends::expect_nothing(Entry& entry) {
  answers_.erase(key_of(entry));
}

MadSends::Entry* MadSends::match(uint32_t agent, uint16_t lid, const Mad& mad) {
  bool response = !has_response_bit(mad);
  AnswerKey key{mad.tid(), agent, response ? lid : uint16_t{0}, mad.mgmt_class(), response, 0};
  auto found = answers_.lower_bound(key);
  if (found == answers_.end()) return nullptr;
  key.id = found->id;
  return *found == key ? find(key.id) : nullptr;
}

std::vector<uint64_t> MadSends::ids() const {
  std::vector<uint64_t> ids;
  ids.reserve(entries_.size());
  for (const auto& [id, entry] : entries_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace rocefs
