#include "test/rdma/uplink/replayed.h"

namespace rocefs::test {
namespace {

constexpr TimeNs kPatience = 10 * kSecond;

bool begins(const Spoken& spoken) {
  return spoken.info().first || spoken.info().only;
}
bool ends(const Spoken& spoken) {
  return spoken.info().last || spoken.info().only;
}
// READs and atomics, which are one packet.
bool awaits_data(const Spoken& spoken) {
  return spoken.info().request && !spoken.info().is_send && !spoken.info().is_write;
}
bool is_read(const Spoken& spoken) {
  return spoken.headers.bth.opcode == wire::Opcode::kRcReadRequest;
}
bool takes_receive(const Spoken& spoken) {
  return spoken.info().is_send ? begins(spoken) : spoken.info().has_imm;
}
uint64_t va_of(const Spoken& spoken) {
  return spoken.info().has_reth ? spoken.headers.reth.va : spoken.headers.atomic.va;
}
uint32_t key_of(const Spoken& spoken) {
  return spoken.info().has_reth ? spoken.headers.reth.rkey : spoken.headers.atomic.rkey;
}
bool has_key(const Spoken& spoken) {
  return spoken.info().has_reth || spoken.info().has_atomic_eth;
}

Bytes native(uint64_t value) {
  Bytes bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string hex(const Bytes& bytes) {
  std::string text;
  for (uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

SendOp operation(const Spoken& first, const Spoken& last) {
  bool imm = last.info().has_imm;
  if (first.info().is_send) return imm ? SendOp::kSendImm : SendOp::kSend;
  if (first.info().is_write) return imm ? SendOp::kWriteImm : SendOp::kWrite;
  if (is_read(first)) return SendOp::kRead;
  bool swaps = first.headers.bth.opcode == wire::Opcode::kRcCmpSwap;
  return swaps ? SendOp::kCompareSwap : SendOp::kFetchAdd;
}

}  // namespace

Replay::Replay(Host& host, const Ip& own, Peer& peer, std::vector<Line> lines, QpType type,
               bool opener)
    : lines_(std::move(lines)), opener_(opener), type_(type), peer_(peer), key_(host.key) {
  const Line* reaches =
      find([this](const Line& line) { return peers(line) && has_key(line.spoken); });
  if (reaches) {
    first_va_ = va_of(reaches->spoken);
    first_key_ = key_of(reaches->spoken);
  }
  end_.emplace(host, own, peer.address(), type, attributes());
  answer_in_turn();
}

// Attributes of the capture's queue pair.
QpAttributes Replay::attributes() {
  QpAttributes attributes;
  attributes.timeout = 14;  // 67 ms
  attributes.remote_qpn = 0x77;
  for (auto line = lines_.rbegin(); line != lines_.rend(); ++line) {
    const wire::Headers& headers = line->spoken.headers;
    bool request = line->spoken.info().request;
    if (!peers(*line)) attributes.remote_qpn = headers.bth.dest_qpn;
    if (request) (peers(*line) ? attributes.receive_psn : attributes.send_psn) = headers.bth.psn;
  }
  const Line* gap = find([](const Line& line) {
    return line.spoken.headers.bth.opcode == wire::Opcode::kRcAck &&
           line.spoken.headers.aeth.syndrome == aeth::kNakSequence;
  });
  // Expects a PSN before all PSNs that the far end will send.
  if (gap) {
    attributes.retry_count = 1;
    if (!peers(*gap)) attributes.receive_psn = gap->spoken.headers.bth.psn;
  }
  return attributes;
}

// Moves each of our answers directly behind the packet that requires it.
void Replay::answer_in_turn() {
  std::vector<Line> before = std::move(lines_), ours;
  lines_.clear();
  for (const Line& line : before) {
    if (!peers(line) && line.spoken.info().response) ours.push_back(line);
  }
  size_t next = 0;
  for (const Line& line : before) {
    if (!peers(line) && line.spoken.info().response) continue;
    lines_.push_back(line);
    if (!peers(line) || !line.spoken.info().request || !line.spoken.headers.bth.ack_req) continue;
    while (next < ours.size()) {
      lines_.push_back(ours[next++]);
      const wire::OpcodeInfo& info = ours[next - 1].spoken.info();
      if (!info.is_read_response || info.last || info.only) break;
    }
  }
  REQUIRE(lines_.size() == before.size());
}

// The NAK in the next line, if it refuses this one.
const wire::Aeth* Replay::refusal() const {
  if (at_ + 1 >= lines_.size() || lines_[at_ + 1].opener == lines_[at_].opener) return nullptr;
  const Spoken& next = lines_[at_ + 1].spoken;
  bool refuses = next.headers.bth.opcode == wire::Opcode::kRcAck &&
                 aeth::kind_of(next.headers.aeth.syndrome) != aeth::Kind::kAck;
  return refuses ? &next.headers.aeth : nullptr;
}

// Data of a READ or an atomic, from the capture.
Bytes Replay::answer_to(const Spoken& request) const {
  Bytes answer;
  uint32_t psn = request.headers.bth.psn;
  for (size_t i = at_ + 1; i < lines_.size(); ++i) {
    const Spoken& spoken = lines_[i].spoken;
    bool answers = spoken.info().response && lines_[i].opener != lines_[at_].opener;
    if (!answers || spoken.headers.bth.psn != psn) continue;
    if (spoken.info().has_atomic_ack_eth) return native(spoken.headers.atomic_ack.original);
    answer.insert(answer.end(), spoken.payload.begin(), spoken.payload.end());
    psn = (psn + 1) & 0xffffff;
    if (ends(spoken)) break;
  }
  return answer;
}

void Replay::run() {
  for (at_ = 0; at_ < lines_.size(); ++at_) {
    const Line& line = lines_[at_];
    INFO("line " << at_ << " of the conversation, " << line.spoken.info().name << ", said by the "
                 << (peers(line) ? "peer" : "engine"));
    if (peers(line)) {
      say(line.spoken);
      continue;
    }
    if (line.spoken.info().request && (begins(line.spoken) || awaits_data(line.spoken)) &&
        asked_.insert(line.spoken.headers.bth.psn).second) {
      ask(line.spoken);
    }
    expect(line.spoken);
  }
  finish();
}

void Replay::say(const Spoken& spoken) {
  if (spoken.info().response) {
    if (!withheld(spoken)) peer_.send(for_us(spoken));
    return;
  }
  prepare(spoken);
  peer_.send(for_us(spoken));
  check_taken(spoken);
}

// Whether an acknowledgement is withheld, because the request is sent again.
bool Replay::withheld(const Spoken& spoken) const {
  bool accepts = spoken.headers.bth.opcode == wire::Opcode::kRcAck &&
                 aeth::kind_of(spoken.headers.aeth.syndrome) == aeth::Kind::kAck;
  if (!accepts) return false;
  for (size_t i = at_ + 1; i < lines_.size(); ++i) {
    const Spoken& later = lines_[i].spoken;
    if (!peers(lines_[i]) && later.info().request &&
        later.headers.bth.psn == spoken.headers.bth.psn) {
      return true;
    }
  }
  return false;
}

// Brings our end into the state of the capture's end when it received this packet.
void Replay::prepare(const Spoken& request) {
  const wire::Aeth* refused = refusal();
  deaf_ |= refused && refused->syndrome == aeth::kNakSequence;
  bool unready = refused && aeth::kind_of(refused->syndrome) == aeth::Kind::kRnr;
  if (takes_receive(request) && !unready && given_.insert(request.headers.bth.psn).second) {
    end_->give_receive();
  }
  if (awaits_data(request) && !refused) end_->put(target(va_of(request)), answer_to(request));
}

Spoken Replay::for_us(Spoken spoken) const {
  wire::Headers& headers = spoken.headers;
  headers.bth.dest_qpn = end_->number();
  if (!has_key(spoken)) return spoken;
  bool refused = spoken.info().request && refusal();
  uint32_t wrong = key_of(spoken) == first_key_ ? end_->unread_key() : ~key_;
  uint32_t key = refused ? wrong : key_;
  uint64_t va = Host::kAddress + target(va_of(spoken));
  headers.reth.va = headers.atomic.va = va;
  headers.reth.rkey = headers.atomic.rkey = key;
  return spoken;
}

// Checks that the peer's message is in its place, and completed.
void Replay::check_taken(const Spoken& request) {
  const wire::Headers& headers = request.headers;
  if (deaf_ || refusal() || is_read(request)) return;
  if (request.info().has_atomic_eth) {
    using Kind = AtomicOperation::Kind;
    bool swaps = headers.bth.opcode == wire::Opcode::kRcCmpSwap;
    AtomicOperation operation{swaps ? Kind::kCompareSwap : Kind::kFetchAdd, headers.atomic.swap_add,
                              headers.atomic.compare};
    uint64_t original = 0;
    Bytes before = answer_to(request);
    std::memcpy(&original, before.data(), sizeof original);
    CHECK(end_->holds(target(headers.atomic.va), native(operation.result(original))));
    return;
  }
  size_t grh = type_ == QpType::kUd ? kGrhLen : 0;
  if (begins(request)) {
    taken_.clear();
    taken_at_ = request.info().is_write ? target(headers.reth.va) : End::kInbox + grh;
  }
  taken_.insert(taken_.end(), request.payload.begin(), request.payload.end());
  if (!ends(request)) return;
  CHECK(end_->holds(taken_at_, taken_));
  bool told = request.info().is_send || request.info().has_imm;
  if (!told) return;
  std::vector<Completion> all = end_->received(1);
  REQUIRE(all.size() == 1);
  CHECK(name(all[0].status) == name(WcStatus::kSuccess));
  CHECK(all[0].byte_len == taken_.size() + grh);
  CHECK(all[0].has_immediate == request.info().has_imm);
  if (request.info().has_imm) CHECK(all[0].immediate == headers.imm);
  if (grh > 0) CHECK(all[0].source_qpn == headers.deth.src_qpn);
}

// Has our end send the message that begins so.
void Replay::ask(const Spoken& first) {
  const Spoken* last = &first;
  Bytes data = first.payload;
  for (size_t i = at_ + 1; !ends(*last) && !awaits_data(first) && i < lines_.size(); ++i) {
    if (peers(lines_[i]) || !lines_[i].spoken.info().request) continue;
    last = &lines_[i].spoken;
    data.insert(data.end(), last->payload.begin(), last->payload.end());
  }
  Asked asked;
  asked.at = requests_.size() * End::kRoom;
  REQUIRE(asked.at + End::kRoom <= End::kInbox);
  if (awaits_data(first)) asked.answer = answer_to(first);
  // The capture's answers tell the outcome.
  if (const wire::Aeth* refused = refusal()) {
    if (refused->syndrome == aeth::kNakRemoteAccess) asked.status = WcStatus::kRemoteAccessError;
    if (refused->syndrome == aeth::kNakSequence) asked.status = WcStatus::kRetryExceeded;
  }
  end_->put(asked.at, data);
  SendRequest request;
  request.op = operation(first, *last);
  size_t length = is_read(first) ? first.headers.reth.dma_len
                                 : (awaits_data(first) ? sizeof(uint64_t) : data.size());
  request.sges = end_->part(asked.at, static_cast<uint32_t>(length));
  request.solicited = last->headers.bth.solicited;
  request.immediate = last->headers.imm;
  if (has_key(first)) {
    request.remote_address = va_of(first);
    request.rkey = key_of(first);
  }
  request.swap_add = first.headers.atomic.swap_add;
  request.compare = first.headers.atomic.compare;
  request.path.local = end_->address();
  request.path.remote = peer_.address();
  request.remote_qpn = first.headers.bth.dest_qpn;
  request.qkey = End::kQkey;
  end_->post(request);
  requests_.push_back(std::move(asked));
}

// Octet for octet, from the BTH to the pad, but for MigReq: Soft-RoCE leaves it 0, a queue pair
// that has never had an alternate path says 1 (9.6.1.3). What has come already may come again: a
// time-out on a slow machine.
void Replay::expect(Spoken spoken) {
  spoken.headers.bth.mig_req = true;
  if (spoken.info().has_deth) spoken.headers.deth.src_qpn = end_->number();
  Bytes wanted = spoken.transport(), got;
  for (TimeNs until = monotonic_ns() + kPatience; monotonic_ns() < until;) {
    std::optional<Spoken> heard = peer_.hear(kPatience);
    REQUIRE(heard);
    got = heard->transport();
    if (got == wanted || got != last_heard_) break;
  }
  CHECK(hex(got) == hex(wanted));
  last_heard_ = got;
  ++heard_;
}

void Replay::finish() {
  std::vector<Completion> all = end_->sent(requests_.size());
  REQUIRE(all.size() == requests_.size());
  bool failed = false;
  for (size_t i = 0; i < all.size(); ++i) {
    INFO("request " << i);
    CHECK(name(all[i].status) == name(requests_[i].status));
    failed |= requests_[i].status != WcStatus::kSuccess;
    if (requests_[i].status != WcStatus::kSuccess) continue;
    CHECK(end_->bytes(requests_[i].at, requests_[i].answer.size()) == requests_[i].answer);
  }
  while (std::optional<Spoken> more = peer_.hear(5 * kMillisecond)) {
    CHECK(hex(more->transport()) == hex(last_heard_));
  }
  bool refuses = false;
  for (const Line& line : lines_) {
    refuses |= !peers(line) && line.spoken.headers.bth.opcode == wire::Opcode::kRcAck &&
               line.spoken.headers.aeth.syndrome == aeth::kNakRemoteAccess;
  }
  CHECK((end_->state() == QpState::kError) == (failed || refuses));
}

}  // namespace rocefs::test
