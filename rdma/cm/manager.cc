#include "rdma/cm/manager.h"

#include <algorithm>

#include "core/base/hash.h"
#include "rdma/nic/device.h"

namespace rocefs {
namespace {

// Connection ids in a message: the sender's, and this end's.
struct Ids {
  uint32_t theirs = 0, ours = 0;
};
template <class M>
Ids ids_of(const M& message) {
  if constexpr (requires { message.remote_id; }) return {message.local_id, message.remote_id};
  return {};
}
Ids ids_of(const cm::Message& message) {
  return std::visit([](const auto& m) { return ids_of(m); }, message);
}

}  // namespace

CmManager::CmManager(Device& device, CmAcceptor& acceptor, uint64_t salt)
    : CmHost(device.fabric().common_scheduler(), guid_of(device.spec().ports[0]),
             Rng(device.fabric().seed() ^ salt, "cm " + device.name())),
      device_(device),
      acceptor_(acceptor),
      next_id_(random_id()),
      waiting_ends_(event_of<&CmManager::end_waiting>(this)),
      reap_(event_of<&CmManager::reap>(this)) {
  for (size_t i = 1; i <= device.port_count(); ++i) {
    counters_.push_back(std::make_unique<CmCounters>());
    device.port(i).gsi().set_agent(this);
  }
}

CmManager::~CmManager() {
  for (size_t i = 1; i <= device_.port_count(); ++i) device_.port(i).gsi().set_agent(nullptr);
}

CmCounters& CmManager::counters(const Port& port) {
  return *counters_[port.number() - 1u];
}

void CmManager::reset_counters() {
  for (const auto& counters : counters_) counters->reset();
}

CmConnection* CmManager::add(Port& port, const AddressVector& path) {
  if (connections_.size() >= kMaxConnections && !end_oldest_timewait()) return nullptr;
  while (next_id_ == 0 || connections_.count(next_id_)) ++next_id_;
  uint32_t id = next_id_++;
  return (connections_[id] = std::make_unique<CmConnection>(*this, port, path, id)).get();
}

void CmManager::note_timewait(const CmConnection& connection) {
  while (!timewaits_.empty() && !in_timewait(timewaits_.front())) timewaits_.pop_front();
  timewaits_.push_back(connection.local_id());
}

CmConnection* CmManager::in_timewait(uint32_t id) const {
  auto found = connections_.find(id);
  bool waits = found != connections_.end() && found->second->state() == CmState::kTimewait;
  return waits ? found->second.get() : nullptr;
}

// Makes room: a connection in timewait without a user only absorbs late packets.
bool CmManager::end_oldest_timewait() {
  while (!timewaits_.empty()) {
    CmConnection* oldest = in_timewait(timewaits_.front());
    timewaits_.pop_front();
    if (!oldest || oldest->has_user()) continue;
    oldest->abandon_timewait();
    return true;
  }
  return false;
}

CmConnection* CmManager::connect(Port& port, const AddressVector& path) {
  return add(port, path);
}

Sidr* CmManager::question(Port& port, const AddressVector& path) {
  if (asking_.size() >= kMaxConnections) return nullptr;
  while (asking_.count(next_id_)) ++next_id_;
  uint32_t id = next_id_++;
  return (asking_[id] = std::make_unique<Sidr>(*this, port, path, id)).get();
}

void CmManager::transmit(Port& port, const AddressVector& path, uint64_t tid,
                         const cm::Message& message, bool again) {
  CmCounters& counters = this->counters(port);
  counters.transmitted[message.index()].add();
  if (again) counters.retried[message.index()].add();
  if (device_.present()) port.gsi().send(path, cm::emit(tid, message));
}

// On the port's packet core. With several the message is taken later: connections belong to ids
// that are of no device.
bool CmManager::receive_mad(PortBase& from, const AddressVector& path,
                            std::span<const uint8_t> mad) {
  Port& port = device_.port(from.number());
  std::optional<cm::Parsed> parsed = cm::parse(mad);
  if (!parsed) return false;
  if (!device_.fabric().shares_fabric()) {
    take(port, path, *parsed);
  } else {
    device_.fabric().alone(
        [this, &port, path, parsed = std::move(*parsed)] { take(port, path, parsed); });
  }
  return true;
}

void CmManager::take(Port& port, const AddressVector& path, const cm::Parsed& parsed) {
  const cm::Message& message = parsed.message;
  CmCounters& counters = this->counters(port);
  counters.received[message.index()].add();
  if (const auto* req = std::get_if<cm::Req>(&message)) {
    take(port, path, parsed.tid, *req);
  } else if (const auto* ask = std::get_if<cm::SidrReq>(&message)) {
    take(port, path, parsed.tid, *ask);
  } else if (const auto* rep = std::get_if<cm::SidrRep>(&message)) {
    auto found = asking_.find(rep->request_id);
    if (found != asking_.end() && found->second->path().remote == path.remote) {
      found->second->receive(*rep);
    }
  } else if (CmConnection* connection = find(message, path)) {
    if (!connection->receive(message)) counters.duplicates[message.index()].add();
  } else {
    answer_unknown(port, path, parsed.tid, message);
  }
}

// Matches both ids and the sender's address. In REQ sent the far end's id is not known yet; a REJ
// may come from a far end that does not know this end's id.
CmConnection* CmManager::find(const cm::Message& message, const AddressVector& path) {
  Ids ids = ids_of(message);
  auto found = connections_.find(ids.ours);
  CmConnection* connection = found == connections_.end() ? nullptr : found->second.get();
  if (!connection && std::holds_alternative<cm::Rej>(message)) {
    auto far = by_remote_id_.find({path.remote, ids.theirs});
    connection = ids.ours == 0 && far != by_remote_id_.end() ? far->second : nullptr;
  }
  if (!connection || connection->path().remote != path.remote) return nullptr;
  bool first_answer = connection->state() == CmState::kReqSent;
  return first_answer || connection->remote_id() == ids.theirs ? connection : nullptr;
}

// Answers a far end whose connection is unknown here, so that it does not retry for a minute.
void CmManager::answer_unknown(Port& port, const AddressVector& path, uint64_t tid,
                               const cm::Message& message) {
  Ids ids = ids_of(message);
  if (std::holds_alternative<cm::Dreq>(message)) {
    transmit(port, path, tid, cm::Drep{ids.ours, ids.theirs, {}}, false);
  } else if (std::holds_alternative<cm::Rep>(message)) {
    cm::Rej rej{ids.ours, ids.theirs};
    rej.about = cm::About::kRep;
    rej.reason = cm::kInvalidId;
    transmit(port, path, tid, rej, false);
  }
}

void CmManager::refuse(Port& port, const AddressVector& path, uint64_t tid, const cm::Req& req,
                       uint16_t reason) {
  cm::Rej rej{0, req.local_id};
  rej.reason = reason;
  transmit(port, path, tid, rej, false);
}

bool CmManager::waits(const AddressVector& path, const cm::Req& req) const {
  return std::any_of(waiting_.begin(), waiting_.end(), [&](const Waiting& one) {
    return one.path.remote == path.remote && one.req.local_id == req.local_id;
  });
}

void CmManager::listener_came() {
  for (const Waiting& one : std::exchange(waiting_, {})) {
    bool before = scheduler().now() < one.until;
    take(*one.port, one.path, one.tid, one.req, before);
    if (!waiting_.empty()) waiting_.back().until = std::min(waiting_.back().until, one.until);
  }
}

void CmManager::end_waiting(TimeNs now) {
  while (!waiting_.empty() && waiting_.front().until <= now) {
    Waiting one = std::move(waiting_.front());
    waiting_.pop_front();
    refuse(*one.port, one.path, one.tid, one.req, cm::kInvalidServiceId);
  }
  if (!waiting_.empty()) scheduler().at(waiting_ends_, waiting_.front().until);
}

void CmManager::take(Port& port, const AddressVector& path, uint64_t tid, const cm::Req& req,
                     bool may_wait) {
  if (waits(path, req)) return counters(port).duplicates[0].add();
  auto known = by_remote_id_.find({path.remote, req.local_id});
  if (known != by_remote_id_.end() && known->second->is_again(tid, req)) {
    counters(port).duplicates[0].add();
    return known->second->answer_again();
  }
  auto stale = by_remote_qpn_.find({path.remote, req.qpn});
  CmConnection* old = known != by_remote_id_.end()    ? known->second
                      : stale != by_remote_qpn_.end() ? stale->second
                                                      : nullptr;
  // New REQ of a far end for a connection that still exists here: the old connection ends (IBTA
  // 12.9.8.3.1).
  if (old && old->state() != CmState::kTimewait) {
    (void)!old->disconnect();
    forget_far_end(*old);
    return refuse(port, path, tid, req, cm::kStaleConnection);
  }
  if (req.transport > 1) return refuse(port, path, tid, req, cm::kInvalidTransport);
  if (req.primary.local_gid != path.remote || req.primary.remote_gid != path.local) {
    return refuse(port, path, tid, req, cm::kInvalidGid);
  }
  if (req.path_mtu < 1 || uint32_t{128} << req.path_mtu > port.mtu()) {
    return refuse(port, path, tid, req, cm::kInvalidMtu);
  }
  CmConnection* connection = add(port, path);
  if (!connection) return refuse(port, path, tid, req, cm::kNoResources);
  connection->take_request(tid, req);
  note_far_end(*connection);
  uint16_t reason = acceptor_.requested(*connection);
  if (reason == 0) return;
  release(*connection);
  if (reason == cm::kInvalidServiceId && may_wait && waiting_.size() < kMaxWaiting) {
    waiting_.push_back({&port, path, tid, req, scheduler().now() + kGrace});
    if (!waiting_ends_.scheduled()) scheduler().after(waiting_ends_, kGrace);
    return;
  }
  refuse(port, path, tid, req, reason);
}

void CmManager::take(Port& port, const AddressVector& path, uint64_t tid, const cm::SidrReq& req) {
  FarEnd far{path.remote, req.request_id};
  auto known = asked_.find(far);
  if (known != asked_.end()) {
    counters(port).duplicates[cm::Message(req).index()].add();
    return known->second->answer_again();
  }
  bool room = asked_.size() < kMaxConnections;
  Sidr& question = *(asked_[far] = std::make_unique<Sidr>(*this, port, path, req.request_id));
  question.take_request(tid, req);
  uint8_t status = room ? acceptor_.asked(question) : uint8_t{cm::kSidrReject};
  if (status == 0) return;
  cm::SidrRep refusal;
  refusal.status = status;
  (void)!question.answer(refusal);
  release(question);
}

void CmManager::note_far_end(CmConnection& connection) {
  const Ip& address = connection.path().remote;
  by_remote_id_[{address, connection.remote_id()}] = &connection;
  by_remote_qpn_[{address, connection.remote_qpn()}] = &connection;
}

void CmManager::forget_far_end(CmConnection& connection) {
  const Ip& address = connection.path().remote;
  auto forget = [&](auto& known, uint32_t key) {
    auto found = known.find({address, key});
    if (found != known.end() && found->second == &connection) known.erase(found);
  };
  forget(by_remote_id_, connection.remote_id());
  forget(by_remote_qpn_, connection.remote_qpn());
}

void CmManager::release(CmConnection& connection) {
  auto found = connections_.find(connection.local_id());
  if (found == connections_.end()) return;
  forget_far_end(connection);
  gone_.push_back(std::move(found->second));
  connections_.erase(found);
  if (!reap_.scheduled()) scheduler().after(reap_, 0);
}

void CmManager::release(Sidr& question) {
  auto move_out = [&](auto& from, auto found) {
    if (found == from.end() || found->second.get() != &question) return;
    gone_questions_.push_back(std::move(found->second));
    from.erase(found);
  };
  move_out(asking_, asking_.find(question.request_id()));
  move_out(asked_, asked_.find({question.path().remote, question.request_id()}));
  if (!reap_.scheduled()) scheduler().after(reap_, 0);
}

void CmManager::reap(TimeNs) {
  gone_.clear();
  gone_questions_.clear();
}

}  // namespace rocefs
