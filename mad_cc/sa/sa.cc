#include "mad_cc/sa/sa.h"

#include <deque>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/base/rng.h"
#include "mad_cc/mad/client_shares.h"
#include "mad_cc/sa/sa_query.h"
#include "mad_cc/sa/sa_transfer.h"

namespace rocefs {
namespace {

// SM_Key (15.4.5): requests with another key are not answered; 0 means none. Default of OpenSM.
constexpr uint64_t kSmKey = 1;
uint64_t sm_key(const mad::Mad& mad) {
  return wire::load64(&mad.bytes[36]);
}

// Transaction: identifies a request of one client.
struct Transaction {
  uint16_t lid;
  uint32_t qpn;
  uint64_t tid;
  bool operator==(const Transaction&) const = default;
};
Transaction transaction_of(const mad::Address& from, uint64_t tid) {
  return {from.lid, from.qpn, tid};
}
struct Hash {
  size_t operator()(const Transaction& one) const {
    uint64_t mixed = one.tid ^ (uint64_t{one.qpn} << 40 ^ uint64_t{one.lid} << 24);
    return static_cast<size_t>((mixed ^ mixed >> 32) * 0x9e3779b97f4a7c15);
  }
};

}  // namespace

struct SubnetAdministrator::Impl final : sa::Transfer::Server {
  struct Request {
    mad::Address from;
    mad::Mad mad;
    TimeNs heard;
  };

  Impl(SubnetAdministrator& owner, const Subnet& subnet, const SubnetState& state,
       Scheduler& scheduler, uint64_t seed, MadCarrier& carrier)
      : owner_(owner),
        subnet_(subnet),
        state_(state),
        scheduler_(scheduler),
        seed_(seed),
        carrier_(carrier),
        rng_(generator()),
        work_(event_of<&Impl::work>(this)) {}

  Rng generator() const {
    return Rng(seed_, "sa " + std::to_string(subnet_.at(subnet_.manager).guid));
  }
  void receive(const mad::Address& from, const mad::Mad& mad);
  void reset();
  // Schedules the answer of the next request, or the next slice of a table.
  void arm();

  SubnetAdministrator& owner_;
  const Subnet& subnet_;
  const SubnetState& state_;
  Scheduler& scheduler_;
  const uint64_t seed_;
  MadCarrier& carrier_;
  SaSettings settings_;
  Rng rng_;

 private:
  void receive_rmpp(const mad::Address& from, const mad::Mad& mad);
  void hear(const mad::Address& from, const mad::Mad& mad);
  void work(TimeNs now);
  void begin(const mad::Mad& request);
  void finish();
  void answer(const mad::Mad& mad);
  void forget(const mad::Address& client, uint64_t tid);
  void transmit(const mad::Address& to, const mad::Mad& mad) override;
  void ended(sa::Transfer& transfer) override;

  // Requests in order of arrival; the front one is being answered.
  std::deque<Request> waiting_;
  std::unique_ptr<sa::Lookup> lookup_;  // of the front, while it is not complete
  size_t reserved_ = 0;                 // octets for its table
  std::unordered_map<Transaction, std::unique_ptr<sa::Transfer>, Hash> transfers_;
  Event work_;

 public:
  // Requests that wait or are being transferred.
  std::unordered_set<Transaction, Hash> pending_;

 private:
  mad::ClientShares requests_{kMaxRequests};
  mad::ClientShares tables_{kMaxTableOctets};
};

void SubnetAdministrator::Impl::receive(const mad::Address& from, const mad::Mad& mad) {
  if (mad.base_version() != 1 || mad.mgmt_class() != mad::kSubnAdm) return;
  if (mad.rmpp_active()) return receive_rmpp(from, mad);
  hear(from, mad);
}

// Answers errors with an ABORT (13.6.2), except in STOPs and ABORTs.
void SubnetAdministrator::Impl::receive_rmpp(const mad::Address& from, const mad::Mad& mad) {
  uint8_t type = mad.rmpp_type();
  auto abort = [&](uint8_t status) { transmit(from, mad::rmpp_end(mad, mad::kRmppAbort, status)); };
  auto transfer = transfers_.find(transaction_of(from, mad.tid()));
  if (type != mad::kRmppData && transfer != transfers_.end()) return transfer->second->receive(mad);
  if (type == mad::kRmppStop || type == mad::kRmppAbort) return;
  if (mad.rmpp_version() != mad::kRmppVersion) return abort(mad::kRmppUnsupportedVersion);
  if (type == mad::kRmppAck) return;  // of a table that is complete: its ACK came twice
  if (type != mad::kRmppData) return abort(mad::kRmppBadType);
  if (!sa::answer_method(mad.method())) return;
  bool first = (mad.rmpp_flags() & mad::kRmppFirst) != 0;
  if (first != (mad.rmpp_segment() == 1)) return abort(mad::kRmppBadSegment);
  // Segmented requests (15.3.1): only GetMulti. Refused at the first segment.
  if (mad.method() != mad::kGetMulti) return abort(mad::kRmppUnspecified);
  if (first) hear(from, mad);
}

void SubnetAdministrator::Impl::hear(const mad::Address& from, const mad::Mad& mad) {
  if (!sa::answer_method(mad.method())) return;
  if (sm_key(mad) != 0 && sm_key(mad) != kSmKey) return;
  if (rng_.chance(settings_.loss)) return;
  Transaction transaction = transaction_of(from, mad.tid());
  if (pending_.count(transaction) != 0) return;
  if (!requests_.take(from.lid, 1)) return transmit(from, sa::answer_of(mad, mad::kBusy));
  pending_.insert(transaction);
  waiting_.push_back({from, mad, scheduler_.now()});
  if (waiting_.size() == 1) arm();
}

void SubnetAdministrator::Impl::arm() {
  if (waiting_.empty()) return scheduler_.cancel(work_);
  TimeNs now = scheduler_.now(), heard = waiting_.front().heard;
  scheduler_.at(work_, lookup_ ? now : heard + std::min(settings_.delay_ns, kNever - 1 - heard));
}

// Does one slice of work, so that other events run in between.
void SubnetAdministrator::Impl::work(TimeNs) {
  if (!lookup_) {
    begin(waiting_.front().mad);
  } else if (!lookup_->step()) {
    finish();
  }
  arm();
}

void SubnetAdministrator::Impl::begin(const mad::Mad& request) {
  if (rng_.chance(settings_.busy)) return answer(sa::answer_of(request, mad::kBusy));
  if (uint16_t status = sa::refusal(request)) return answer(sa::answer_of(request, status));
  lookup_ = std::make_unique<sa::Lookup>(request, subnet_, state_, settings_.delay_ns);
  if (lookup_->status() != mad::kOk) return answer(lookup_->answer());
  if (!lookup_->table()) return;
  // Reservation before the table is made: a client must not take the memory of others.
  size_t most = lookup_->most_octets();
  if (!tables_.take(waiting_.front().from.lid, most))
    return answer(sa::answer_of(request, mad::kSaNoResources));
  reserved_ = most;
}

void SubnetAdministrator::Impl::finish() {
  if (!lookup_->table()) return answer(lookup_->answer());
  mad::Address client = waiting_.front().from;
  mad::Message table = lookup_->take_table();
  lookup_.reset();
  waiting_.pop_front();
  tables_.give_back(client.lid, std::exchange(reserved_, 0) - table.size());
  auto transfer = std::make_unique<sa::Transfer>(*this, scheduler_, client, std::move(table));
  transfers_.emplace(transaction_of(client, transfer->tid()), std::move(transfer));
}

// Answers the front request, which ends with it.
void SubnetAdministrator::Impl::answer(const mad::Mad& mad) {
  mad::Address client = waiting_.front().from;
  lookup_.reset();
  waiting_.pop_front();
  forget(client, mad.tid());
  transmit(client, mad);
}

void SubnetAdministrator::Impl::forget(const mad::Address& client, uint64_t tid) {
  pending_.erase(transaction_of(client, tid));
  requests_.give_back(client.lid, 1);
}

void SubnetAdministrator::Impl::ended(sa::Transfer& transfer) {
  mad::Address client = transfer.to();
  uint64_t tid = transfer.tid();
  tables_.give_back(client.lid, transfer.octets());
  forget(client, tid);
  transfers_.erase(transaction_of(client, tid));
}

void SubnetAdministrator::Impl::transmit(const mad::Address& to, const mad::Mad& mad) {
  mad::Address back = to;
  back.qkey = mad::kQkey;
  carrier_.transmit(owner_, back, mad);
}

void SubnetAdministrator::Impl::reset() {
  scheduler_.cancel(work_);
  lookup_.reset();
  reserved_ = 0;
  waiting_.clear();
  transfers_.clear();
  pending_.clear();
  requests_.clear();
  tables_.clear();
  rng_ = generator();
}

SubnetAdministrator::SubnetAdministrator(const Subnet& subnet, const SubnetState& state,
                                         Scheduler& scheduler, uint64_t seed, MadCarrier& carrier)
    : impl_(std::make_unique<Impl>(*this, subnet, state, scheduler, seed, carrier)) {}
SubnetAdministrator::~SubnetAdministrator() = default;

void SubnetAdministrator::configure(const SaSettings& settings) {
  impl_->settings_ = settings;
  impl_->arm();
}

void SubnetAdministrator::reset() {
  impl_->reset();
}

void SubnetAdministrator::receive(const mad::Address& from, const mad::Mad& mad) {
  impl_->receive(from, mad);
}

size_t SubnetAdministrator::pending() const {
  return impl_->pending_.size();
}

}  // namespace rocefs
