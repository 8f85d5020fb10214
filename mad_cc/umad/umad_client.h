// UmadClient: the core's side of one open umad file: its agents at the port, and what they have
// under way.
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

// What a program may read: a message that came for an agent, or a request of its own that was not
// answered.
struct UmadArrival {
  umad::Header header{};  // but for its length
  mad::Message message;
  bool received = false;
  Shares::Share share;  // of its user's, until it is read
};

// What the open files of a port have together. Any thread.
struct UmadShares {
  static constexpr size_t kFiles = 1024;
  static constexpr size_t kUnread = 256 << 20;  // octets
  Shares files{kFiles, kFiles / 8};
  Shares unread{kUnread, kUnread / 8};
  // Octets of messages that are sent, until they are answered, or read as not answered.
  Shares sends{MadPort::kMaxOctets, MadPort::kMaxOctets / 8};
};

// How much came that is not read yet. Both threads: the core takes, the control thread gives back.
class UmadRoom {
 public:
  // Whose file it is.
  struct Owner {
    uid_t uid = 0;
    bool privileged = true;
  };
  UmadRoom(std::shared_ptr<UmadShares> shares, const Owner& owner)
      : shares_(std::move(shares)), owner_(owner) {}

  static constexpr size_t kMessages = 4096;
  static constexpr size_t kOctets = 16 << 20;
  // Requests that are under way, or ended without an answer.
  static constexpr size_t kRequests = 65536;
  // Of messages whose send is under way, as many as so many single MADs have.
  static constexpr size_t kSendOctets = kRequests * mad::kMadSize;

  // What nobody asked for has half of it, or who floods could keep answers out. Null: there is
  // none, or the user has its share.
  Shares::Share take(size_t octets, bool asked_for);
  // For a message to be sent. Null: the user has its share.
  Shares::Share take_send(size_t octets);
  void take_request() { requests_.fetch_add(1); }
  bool has_request() const { return requests_.load() < kRequests; }
  void give_request() { requests_.fetch_sub(1); }
  void give(const UmadArrival& read);

 private:
  const std::shared_ptr<UmadShares> shares_;
  const Owner owner_;
  std::atomic<size_t> messages_{0}, octets_{0}, requests_{0};
};

// Core thread. It outlives the open file until remove_agents() has run.
class UmadClient final : public MadUser {
 public:
  // Where to what arrives goes; it is not called from within send(). What there is no room for goes
  // to `dropped`: it was received, and nobody had asked for it, or its request ends as one that was
  // not answered.
  using Arrived = std::function<void(UmadArrival arrival)>;
  using Dropped = std::function<void()>;
  // The port and `room` outlive it.
  UmadClient(MadPort& port, std::shared_ptr<UmadRoom> room, Arrived arrived, Dropped dropped);

  // The agent's number, the lowest that is free. ENOMEM when there is none; else what
  // MadPort::add_agent() says.
  Result<uint32_t> add_agent(MadRegistration registration);
  // EINVAL: there is none of that number.
  Result<void> remove_agent(uint32_t number);
  void remove_agents();
  // EINVAL also where a request with this TID and class is under way, as ib_umad_write(); EIO
  // where no agent has this number. ENOMEM when UmadRoom::kRequests have not been read, kSendOctets
  // would be under way, or the user has its share; else what MadPort::send() says.
  Result<void> send(umad::Request request);

  void received(uint32_t agent, std::optional<uint64_t> request, const mad::Address& from,
                mad::Message message) override;
  void ended(uint32_t agent, uint64_t request, End end) override;

 private:
  struct Agent {
    uint32_t id;  // at the port
    MadRegistration registration;
  };
  // What two sends of one file may not have in common.
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
  void tell_unanswered(const Sent& sent);

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
