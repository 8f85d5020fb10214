#include "mad_cc/sa/sa_query.h"

#include <algorithm>

#include "mad_cc/sa/sa_paths.h"

namespace rocefs::sa {
namespace {

constexpr size_t kAttributeOffset = 44, kSmKey = 36;
constexpr uint8_t kNoResponseTime = 0x1f;  // RRespTime, 13.6.2.1
// Slice sizes: records, and ports that routes read, which take a tenth of the time.
constexpr uint64_t kSlice = 1024, kPortsPerRecord = 10;

bool denied(uint8_t method, uint16_t attribute) {
  if (method == mad::kSet && attribute == kInformInfo) return true;
  return attribute == kServiceRecord || attribute == kMcMemberRecord;
}

}  // namespace

std::optional<uint8_t> answer_method(uint8_t method) {
  switch (method) {
    case mad::kSet:
      return mad::kGetResp;
    case mad::kGetTraceTable:
      return mad::kGetTableResp;
    case mad::kSend:
    case mad::kTrap:
    case mad::kTrapRepress:
      return std::nullopt;
    default:
      if ((method & mad::kResponseBit) != 0) return std::nullopt;
      return method | mad::kResponseBit;
  }
}

uint16_t refusal(const mad::Mad& request) {
  if (request.class_version() != kClassVersion) return mad::kBadVersion;
  uint16_t attribute = request.attribute();
  switch (request.method()) {
    case mad::kGet:
      break;
    case mad::kGetTable:
      if (attribute == kClassPortInfo) return mad::kBadMethodAttribute;
      break;
    case mad::kSet:
    case mad::kDelete:
      if (denied(request.method(), attribute)) return kRequestDenied;
      return mad::kBadMethodAttribute;
    default:
      return mad::kBadMethod;
  }
  bool served = attribute == kPathRecord || record_size(attribute) != 0;
  return served ? mad::kOk : mad::kBadMethodAttribute;
}

mad::Mad answer_of(const mad::Mad& request, uint16_t status) {
  mad::Mad answer = request;
  answer.set_method(answer_method(request.method()).value_or(mad::kGetResp));
  answer.set_status(status);
  std::fill_n(&answer.bytes[24], 12, uint8_t{0});  // RMPP: none
  wire::store64(&answer.bytes[kSmKey], 0);
  wire::store16(&answer.bytes[kAttributeOffset], 0);
  return answer;
}

Lookup::Lookup(const mad::Mad& request, const Subnet& subnet, const SubnetState& state,
               TimeNs delay_ns)
    : request_(request), picture_{subnet, state, delay_ns, Routes(subnet, state)} {
  if (request.attribute() != kPathRecord) {
    records_ = records_of(request_, picture_);
  } else {
    PathQuery query = paths_of(request_, picture_);
    status_ = query.status;
    records_ = std::move(query.records);
  }
  mad::Mad header = answer_of(request_, mad::kOk);
  message_.assign(header.bytes.begin(), header.bytes.begin() + kHeaderSize);
}

size_t Lookup::most_octets() const {
  if (!records_) return kHeaderSize;
  return kHeaderSize + records_->size() * (table() ? records_->candidates() : 2);
}

bool Lookup::step() {
  if (!records_) return false;
  message_.reserve(most_octets());
  size_t size = records_->size();
  uint64_t effort = picture_.routes.effort(), end = candidate_ + kSlice;
  while (candidate_ < records_->candidates() && !enough()) {
    if (candidate_ + (picture_.routes.effort() - effort) / kPortsPerRecord >= end) return true;
    message_.resize(message_.size() + size);
    if (records_->make(candidate_++, &message_[message_.size() - size])) {
      ++found_;
    } else {
      message_.resize(message_.size() - size);
    }
  }
  return false;
}

mad::Message Lookup::take_table() {
  // AttributeOffset in units of 8 octets; 0 for fewer than two records, as OpenSM.
  if (found_ > 0)
    wire::store16(&message_[kAttributeOffset], static_cast<uint16_t>(records_->size() / 8));
  message_[26] = kNoResponseTime << 3;
  message_.shrink_to_fit();
  return std::move(message_);
}

mad::Mad Lookup::answer() const {
  if (status_ != mad::kOk) return answer_of(request_, status_);
  if (found_ == 0) return answer_of(request_, mad::kSaNoRecords);
  if (found_ > 1) return answer_of(request_, mad::kSaTooManyRecords);
  mad::Mad answer = answer_of(request_, mad::kOk);
  wire::store16(&answer.bytes[kAttributeOffset], static_cast<uint16_t>(records_->size() / 8));
  std::fill(answer.bytes.begin() + kHeaderSize, answer.bytes.end(), uint8_t{0});
  std::copy(message_.begin() + kHeaderSize, message_.end(), answer.bytes.begin() + kHeaderSize);
  return answer;
}

}  // namespace rocefs::sa
