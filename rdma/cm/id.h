// CmId: an rdma_cm id: its addresses, and the connection or the listening behind them
// (drivers/infiniband/core/cma.c).
//
// Core thread.
#pragma once

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/loop/scheduler.h"
#include "rdma/cm/address.h"
#include "rdma/cm/connection.h"
#include "rdma/cm/scope.h"
#include "rdma/cm/sidr.h"

namespace rocefs {

class CmId;
class CmManager;
class PortHost;

// Parameters of a connection, from the program or from the far end.
struct CmParameters {
  uint32_t qpn = 0;
  uint32_t qkey = 0;
  bool srq = false;
  bool flow_control = false;
  uint8_t responder_resources = 0, initiator_depth = 0;
  uint8_t retry_count = 0, rnr_retry_count = 0;
  std::vector<uint8_t> private_data;
};

// Parameters that REQ and REP have in common.
template <class Message>
CmParameters parameters_of(const Message& message) {
  CmParameters said;
  said.qpn = message.qpn;
  said.responder_resources = message.responder_resources;
  said.initiator_depth = message.initiator_depth;
  said.flow_control = message.flow_control;
  said.rnr_retry_count = message.rnr_retry_count;
  said.srq = message.srq;
  return said;
}

// rdma_cm_event_type of librdmacm.
enum class CmEventType : uint32_t {
  kAddressResolved,
  kAddressError,
  kRouteResolved,
  kRouteError,
  kConnectRequest,
  kConnectResponse,
  kConnectError,
  kUnreachable,
  kRejected,
  kEstablished,
  kDisconnected,
  kDeviceRemoval,
  kMulticastJoin,
  kMulticastError,
  kAddressChange,
  kTimewaitExit,
  kAddrinfoResolved,
  kAddrinfoError,
  kUser,
  kInternal,
};

struct CmEvent {
  CmEventType type = CmEventType::kAddressResolved;
  int32_t status = 0;  // 0, -errno, or a RejectReason or SidrStatus
  CmParameters parameters = {};
  // UD: path to the far end.
  std::optional<AddressVector> path = std::nullopt;
  uint64_t argument = 0;  // of an event that the program has written: kUser, kInternal
};

// User of an id. May destroy the id from within a call.
class CmIdUser {
 public:
  virtual ~CmIdUser() = default;
  virtual void happened(CmId& id, const CmEvent& event) = 0;
  // A connection or a UD queue pair is requested. A user without room destroys `id`, which refuses
  // the request.
  virtual void incoming(CmId& listener, std::unique_ptr<CmId> id, const CmEvent& event) = 0;
};

// Way from an id to a destination.
struct CmWay {
  enum class Reach : uint8_t {
    kNone,     // no route
    kNobody,   // in a network of the port, but nobody in the fabric has the address
    kOutside,  // the kernel's neighbours are asked
    kKnown,
  };
  Port* port = nullptr;  // null: kNone
  Reach reach = Reach::kNone;
};

// CmIdHost: what an id needs of the devices and of all other ids.
class CmIdHost {
 public:
  virtual Scheduler& scheduler() = 0;
  // Returns the serial number of the id: later ids have greater ones.
  virtual uint64_t add(CmId& id) = 0;
  virtual void remove(CmId& id) = 0;
  // Reserves the port of `address`, or a free one for port 0. EADDRINUSE.
  virtual Result<void> bind(CmId& id, CmAddress& address) = 0;
  virtual Result<void> listen(CmId& id) = 0;
  virtual void stop_listening(CmId& id) = 0;
  // Port of a present device in the scope that has the address; null if there is none.
  virtual Port* port_at(const Ip& address, const CmScope& scope) const = 0;
  // Port in the scope from which the destination is reached. An unspecified source becomes an
  // address of that port; a loopback destination becomes one of the scope's own.
  virtual CmWay resolve(CmAddress& source, CmAddress& destination, const CmScope& scope) = 0;
  // For kOutside: CmId::searched() is called later if the kernel has an answer by `patience`.
  // `attempt` goes back to the id with it.
  virtual void search(const CmId& id, uint32_t attempt, const Ip& source, const Ip& destination,
                      TimeNs patience) = 0;
  virtual CmManager& manager(const PortHost& device) = 0;

 protected:
  ~CmIdHost() = default;
};

class CmId final : public CmUser, public SidrUser {
 public:
  enum class State : uint8_t {
    kIdle,
    kBound,
    kAddressQuery,
    kAddressResolved,
    kRouteResolved,
    kConnect,
    kDisconnect,
    kListen,
    kGone,  // its device has left
  };
  static constexpr uint32_t kUdpQkey = 0x01234567;

  CmId(CmIdHost& host, PortSpace space, QpType type, CmIdUser& user, CmScope scope);
  // Rejects, disconnects or refuses what is open at the far end.
  ~CmId() override;
  CmId(const CmId&) = delete;
  CmId& operator=(const CmId&) = delete;

  void set_user(CmIdUser& user) { user_ = &user; }
  CmIdUser& user() const { return *user_; }
  // Position among all ids in order of creation.
  uint64_t serial() const { return serial_; }
  const CmScope& scope() const { return scope_; }
  PortSpace space() const { return space_; }
  QpType type() const { return type_; }
  State state() const { return state_; }
  const CmAddress& local() const { return local_; }
  const CmAddress& remote() const { return remote_; }
  // Service that the id listens to, and service that it connects to.
  uint64_t service_id() const;
  uint64_t remote_service_id() const;
  // Null while the local address is unspecified.
  Port* port() const { return port_; }
  const AddressVector& path() const { return path_; }
  bool reuses_address() const { return reuses_address_; }
  bool takes_both_families() const { return !family_only_; }

  // Commands of rdma_cm. EINVAL in a state that does not allow them; events come later.
  Result<void> bind(const CmAddress& address);
  // ENETUNREACH without a route. Where nobody is known to have the address the id waits `patience`
  // for it, as the kernel for a neighbour (drivers/infiniband/core/addr.c): ETIMEDOUT by an event.
  Result<void> resolve_address(const CmAddress& source, const CmAddress& destination,
                               TimeNs patience);
  Result<void> resolve_route();
  Result<void> connect(const CmParameters& parameters);
  Result<void> listen();
  // Without parameters: the active side's answer to a REP.
  Result<void> accept(const std::optional<CmParameters>& parameters);
  Result<void> reject(uint8_t reason, std::span<const uint8_t> private_data);
  Result<void> disconnect();
  Result<void> communication_established();
  // As CmConnection::attributes(); without a connection for INIT alone.
  Result<QpAttributes> attributes(QpState to, uint32_t& mask) const;

  void set_traffic_class(uint8_t traffic_class);
  Result<void> set_reuse_address(bool on);
  // The event of a group that the id has joined: its address, as a destination of datagrams. EINVAL
  // unless the id is of UD, at an address of a device, and the group of its family.
  Result<CmEvent> join(const CmAddress& group) const;
  Result<void> set_family_only(bool on);
  Result<void> set_ack_timeout(uint8_t timeout);  // 5 bits: 4.096 us x 2^it

  // Adopts what a far end has requested, for an id that its user has not got yet.
  void take(CmConnection& connection, const CmAddress& local, const CmAddress& remote);
  void take(Sidr& question, const CmAddress& local, const CmAddress& remote);
  void device_left();
  // Answer of the search that CmIdHost::search() has begun: 0 or an errno.
  void searched(uint32_t attempt, int error);

  void replied(const cm::Rep& rep) override;
  void established(std::span<const uint8_t> private_data) override;
  void rejected(const cm::Rej& rej) override;
  void unreachable() override;
  void disconnected(std::span<const uint8_t> private_data) override;
  void timewait_over() override;
  void answered(const cm::SidrRep& rep) override;
  void unanswered() override;

 private:
  Result<void> check(bool allowed) const;
  void raise(const CmEvent& event) { user_->happened(*this, event); }
  void raise_failure(CmEventType type, int32_t status);
  void set_ends(Port& port, const CmAddress& local, const CmAddress& remote);
  void await_address(const CmWay& way, TimeNs patience);
  void end_query(int error);
  void query_over(TimeNs) { end_query(ETIMEDOUT); }
  void release();
  size_t header_size() const;
  Result<void> put_private_data(const CmParameters& parameters, std::span<uint8_t> out) const;
  Result<void> connect_datagrams(const CmParameters& parameters);
  Result<void> answer_question(uint8_t status, const CmParameters& parameters);

  CmIdHost& host_;
  const uint64_t serial_;
  const CmScope scope_;
  const PortSpace space_;
  const QpType type_;
  CmIdUser* user_;
  State state_ = State::kIdle;
  CmAddress local_, remote_;
  Port* port_ = nullptr;
  AddressVector path_;
  bool reuses_address_ = false, family_only_ = false;
  uint8_t ack_timeout_ = 0;
  uint32_t qkey_ = 0;
  CmConnection* connection_ = nullptr;
  Sidr* question_ = nullptr;
  // Ends of an address query in progress.
  struct Query {
    Port* port = nullptr;
    CmAddress local = {}, remote = {};
    uint32_t attempt = 0;
  };
  Query query_;
  Event query_over_;
};

}  // namespace rocefs
