// UmadClient: the core's side of one open umad file: its agents at the port, and their sends in
// progress.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>

#include "core/base/shares.h"
#include "mad_cc/port/mad_port.h"
#include "mad_cc/umad/umad_message.h"

namespace rocefs {

// Message for read(2): received for an agent, or a request of its own that was not answered.
struct UmadArrival {
  umad::Header header{};  // but for its length
  mad::Message message;
  bool received = false;
  Shares::Share share;  // of its user's, until it is read
};

// Limits that all open files of a port share. Any thread.
struct UmadShares {
  static constexpr size_t kFiles = 1024;
  static constexpr size_t kUnread = 256 << 20;  // octets
  Shares files{kFiles, kFiles / 8};
  Shares unread{kUnread, kUnread / 8};
  // Octets of messages sent, until they are answered or read back as not answered.
  Shares sends{MadPort::kMaxOctets, MadPort::kMaxOctets / 8};
};

// UmadRoom: limits what has arrived and is not read. Two threads: the core takes, the control
// thread gives back.
class UmadRoom {
 public:
  // User that has the file open.
  struct User {
    uid_t uid = 0;
    bool privileged = true;
  };
  UmadRoom(std::shared_ptr<UmadShares> shares, const User& user)
      : shares_(std::move(shares)), user_(user) {}

  static constexpr size_t kMessages = 4096;
  static constexpr size_t kOctets = 16 << 20;
  // Limit of requests in progress or ended without an answer.
  static constexpr size_t kRequests = 65536;
  // Limit of octets of sends in progress, the size of as many single MADs.
  static constexpr size_t kSendOctets = kRequests * mad::kMadSize;

  // Takes room for an arrival; null if there is none, or beyond the user's share. Unsolicited
  // messages get half of it at most, so that a flood of them cannot keep answers out.
  Shares::Share take(size_t octets, bool asked_for);
  // Takes room for a message to be sent; null beyond the user's share.
  Shares::Share take_send(size_t octets);
  void take_request() { requests_.fetch_add(1); }
  bool has_request() const { return requests_.load() < kRequests; }
  void give_request() { requests_.fetch_sub(1); }
  void give(const UmadArrival& read);

 private:
  const std::shared_ptr<UmadShares> shares_;
  const User user_;
  std::atomic<size_t> messages_{0}, octets_{0}, requests_{0};
};

// Core thread. The client outlives the open file until remove_agents() has run.
class UmadClient final : public MadUser {
 public:
  // Arrived gets every arrival, never from within send(). Dropped is called for an arrival without
  // room: an unsolicited message, or the answer to a request, which then ends as not answered.
  using Arrived = std::function<void(UmadArrival arrival)>;
  using Dropped = std::function<void()>;
  // `port` and `room` outlive the client.
  UmadClient(MadPort& port, std::shared_ptr<UmadRoom> room, Arrived arrived, Dropped dropped);

  // Returns the agent's number, the lowest that is free. Fails with ENOMEM if none is, else as
  // MadPort::add_agent().
  Result<uint32_t> add_agent(MadRegistration registration);
  // Fails with EINVAL for a number without an agent.
  Result<void> remove_agent(uint32_t number);
  void remove_agents();
  // Fails as MadPort::send(), and with EINVAL while a request with this TID and class is in
  // progress, as ib_umad_write(); with EIO for a number without an agent; with ENOMEM if
  // UmadRoom::kRequests are unread, kSendOctets would be exceeded, or beyond the user's share.
  Result<void> send(umad::Request request);

  void received(uint32_t agent, std::optional<uint64_t> request, const mad::Address& from,
                mad::Message message) override;
  void ended(uint32_t agent, uint64_t request, End end) override;

 private:
  struct Agent {
    uint32_t id;  // at the port
    MadRegistration registration;
  };
  // Identity: two sends of one file must differ in it.
  struct Identity {
    uint64_t tid;
    uint8_t mgmt_class;
    bool response;
    uint16_t lid;  // of responses
    bool operator==(const Identity&) const = default;
  };
  struct Hash {
    size_t operator()(const Identity& identity) const;
  };
  struct Sent {
    uint32_t number;
    Identity identity;
    umad::Header header;
    size_t octets;
    Shares::Share share;
    std::array<uint8_t, 24> mad;  // its header
  };

  std::optional<uint32_t> number_of(uint32_t agent) const;
  std::optional<Sent> take_sent(uint64_t request);
  void deliver_unanswered(const Sent& sent);

  MadPort& port_;
  const std::shared_ptr<UmadRoom> room_;
  const Arrived arrived_;
  const Dropped dropped_;
  std::array<std::optional<Agent>, umad::kMaxAgents> agents_;
  std::unordered_map<uint64_t, Sent> sent_;
  std::unordered_map<Identity, uint32_t, Hash> identities_;  // of sent_, how many have each
  size_t octets_ = 0;                                        // of sent_
  uint64_t last_request_ = 0;
};

}  // namespace rocefs
