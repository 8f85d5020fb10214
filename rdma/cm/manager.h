// CmManager: the communication manager of one device: its connections and SIDR questions, and their
// messages through queue pair 1 of its ports.
//
// Core thread; counters are read by any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rdma/cm/connection.h"
#include "rdma/cm/counters.h"
#include "rdma/cm/host.h"
#include "rdma/cm/sidr.h"
#include "rdma/nic/gsi.h"

namespace rocefs {

class Device;

// Acceptor of requests from far ends. Returns 0, or the reason for refusing. An accepted object may
// already be released on return.
class CmAcceptor {
 public:
  virtual ~CmAcceptor() = default;
  virtual uint16_t requested(CmConnection& connection) = 0;  // a RejectReason
  virtual uint8_t asked(Sidr& question) = 0;                 // a SidrStatus
};

class CmManager final : public CmHost, public MadAgent {
 public:
  static constexpr size_t kMaxConnections = 65536;
  // Time that a REQ without a listener waits for one before it is refused: a server may be between
  // two calls of listen, as perftest's is.
  static constexpr TimeNs kGrace = 500 * kMillisecond;
  static constexpr size_t kMaxWaiting = 256;

  // `salt` tells the ids of this instance from those of earlier ones, which a far end may remember.
  CmManager(Device& device, CmAcceptor& acceptor, uint64_t salt);
  ~CmManager() override;

  Device& device() { return device_; }
  CmCounters& counters(const Port& port);
  void reset_counters();

  // Starts a connection on that path. Null when there are too many. It has no user yet; abandon()
  // frees it.
  CmConnection* connect(Port& port, const AddressVector& path);
  // Starts a SIDR question, likewise.
  Sidr* question(Port& port, const AddressVector& path);
  size_t connections() const { return connections_.size(); }
  size_t questions() const { return asking_.size() + asked_.size(); }

  // On the packet core of the port.
  bool receive_mad(PortBase& from, const AddressVector& path,
                   std::span<const uint8_t> mad) override;

  // A listener has been added: waiting REQs are tried again.
  void listener_came();

  void transmit(Port& port, const AddressVector& path, uint64_t tid, const cm::Message& message,
                bool again) override;
  void note_far_end(CmConnection& connection) override;
  void forget_far_end(CmConnection& connection) override;
  void note_timewait(const CmConnection& connection) override;
  void release(CmConnection& connection) override;
  void release(Sidr& question) override;

 private:
  // Far end's address, and an id or queue pair number there.
  using FarEnd = std::pair<Ip, uint32_t>;

  // REQ that waits for a listener.
  struct Waiting {
    Port* port;
    AddressVector path;
    uint64_t tid;
    cm::Req req;
    TimeNs until;
  };

  CmConnection* add(Port& port, const AddressVector& path);
  CmConnection* find(const cm::Message& message, const AddressVector& path);
  void take(Port& port, const AddressVector& path, const cm::Parsed& parsed);
  void take(Port& port, const AddressVector& path, uint64_t tid, const cm::Req& req,
            bool may_wait = true);
  bool waits(const AddressVector& path, const cm::Req& req) const;
  void end_waiting(TimeNs now);
  void take(Port& port, const AddressVector& path, uint64_t tid, const cm::SidrReq& req);
  void answer_unknown(Port& port, const AddressVector& path, uint64_t tid,
                      const cm::Message& message);
  void refuse(Port& port, const AddressVector& path, uint64_t tid, const cm::Req& req,
              uint16_t reason);
  void reap(TimeNs now);
  CmConnection* in_timewait(uint32_t id) const;
  bool end_oldest_timewait();

  Device& device_;
  CmAcceptor& acceptor_;
  uint32_t next_id_;
  std::vector<std::unique_ptr<CmCounters>> counters_;  // by port
  std::unordered_map<uint32_t, std::unique_ptr<CmConnection>> connections_;
  std::map<FarEnd, CmConnection*> by_remote_id_, by_remote_qpn_;
  std::deque<uint32_t> timewaits_;  // oldest first; some have left timewait since
  std::unordered_map<uint32_t, std::unique_ptr<Sidr>> asking_;
  std::map<FarEnd, std::unique_ptr<Sidr>> asked_;
  std::deque<Waiting> waiting_;  // oldest first
  Event waiting_ends_;
  std::vector<std::unique_ptr<CmConnection>> gone_;
  std::vector<std::unique_ptr<Sidr>> gone_questions_;
  Event reap_;
};

}  // namespace rocefs
