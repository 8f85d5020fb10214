// Ucma: the commands of librdmacm (drivers/infiniband/core/ucma.c). A channel has ids, and a queue
// of their events.
//
// Core thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/shares.h"
#include "rdma/cm/cma.h"

namespace rocefs {

class UcmaChannel;

namespace ucma {
struct Header;
struct EventAnswer;
}  // namespace ucma

// All channels by their names, which their openers choose, and all ids by their numbers.
class Ucma {
 public:
  // Size of librdmacm's tables; some ids are reserved for privileged users.
  static constexpr uint32_t kMaxIds = 65536, kReservedIds = 16384;

  // User of a channel.
  struct Credentials {
    uint32_t uid = 0;
    bool privileged = true;
    CmScope scope = {};
    pid_t pid = 0;
  };

  explicit Ucma(Cma& cma);
  ~Ucma();

  // `readable` is called when the queue of events stops being empty, but not within a command.
  void open(uint64_t name, const Credentials& owner, std::function<void()> readable);
  // Destroys the channel's ids too.
  void close(uint64_t name);
  // Null if there is none.
  UcmaChannel* channel(uint64_t name);
  size_t ids() const { return contexts_.size(); }
  // All ids, one a line: DEVICE cm_id and values, KEY=VALUE; one that listens to any address is a
  // line of each device of its scope.
  std::string resources() const;

 private:
  friend class UcmaChannel;
  struct Context {
    uint32_t number = 0;
    UcmaChannel* channel = nullptr;
    uint64_t uid = 0;  // program's name of the id; 0: not known yet
    bool fetched =
        true;  // false: the request event is not read yet, and no command may name the id
    uint32_t reported = 0;
    uint32_t backlog = 0;  // limit of waiting connections
    std::vector<uint32_t> memberships;
    std::unique_ptr<CmId> id;
    Shares::Share share;
  };

  // A multicast group that an id has joined. Its number is not that of an id.
  struct Membership {
    Context* of = nullptr;
    uint64_t uid = 0;  // program's name of it
    uint32_t reported = 0;
    Shares::Share share;
  };

  // Null when the user's share is used up.
  Context* add(UcmaChannel& channel);
  void remove(Context& context);
  Context* find(uint32_t number);
  Context* find(const CmId& id);

  Cma& cma_;
  std::map<uint64_t, std::unique_ptr<UcmaChannel>> channels_;
  std::map<uint32_t, std::unique_ptr<Context>> contexts_;
  std::map<const CmId*, Context*> by_id_;
  std::map<uint32_t, Membership> memberships_;
  // One for ids, one for memberships.
  Shares shares_{kMaxIds, kReservedIds}, membership_shares_{kMaxIds, kReservedIds};
  uint32_t next_ = 0, next_membership_ = 0;
};

class UcmaChannel final : public CmIdUser {
 public:
  static constexpr uint32_t kMaxBacklog = 1024;
  static constexpr size_t kMaxEvents = 16384;  // beyond them commands that make events fail

  UcmaChannel(Ucma& ucma, const Ucma::Credentials& owner, std::function<void()> readable);
  ~UcmaChannel() override;
  UcmaChannel(const UcmaChannel&) = delete;
  UcmaChannel& operator=(const UcmaChannel&) = delete;

  struct Reply {
    std::string bytes;
    // The queue of events has become empty: this channel's, or that of the channel migrated from.
    bool emptied = false, other_emptied = false;
  };
  // Executes one command as written to the kernel; `option` is the value of SET_OPTION, `other` the
  // channel that MIGRATE_ID names, null if there is none. Errors as the kernel's: EINVAL for a
  // short command or an id of another channel, ENOENT for no id, ENOSPC when the answer does not
  // fit, EAGAIN when no event waits, ENOSYS for an unknown command. ENOMEM at a limit.
  Result<Reply> command(std::span<const uint8_t> octets, std::span<const uint8_t> option,
                        UcmaChannel* other);
  size_t events() const { return events_.size(); }
  const Ucma::Credentials& owner() const { return owner_; }

  void happened(CmId& id, const CmEvent& event) override;
  void incoming(CmId& listener, std::unique_ptr<CmId> id, const CmEvent& event) override;

 private:
  using Context = Ucma::Context;
  using Octets = std::span<const uint8_t>;
  struct Call {
    Octets in, option;
    size_t out = 0;  // size of the answer, at most
    UcmaChannel* other = nullptr;
    Reply reply;
  };
  struct Waiting {
    Context* of;
    Context* fresh;  // new id of a connect request
    CmEvent event;
    std::optional<uint32_t> membership = std::nullopt;  // of an event of a multicast group
  };
  using Handler = Result<void> (UcmaChannel::*)(Call&);
  static const Handler kHandlers[];

  Result<Context*> context_of(uint32_t number);
  void queue(Waiting waiting);
  Result<void> resolve(CmId& id, const Result<CmAddress>& source, const Result<CmAddress>& to,
                       uint32_t timeout_ms);
  void forget(Context& context);
  void format(const Waiting& waiting, ucma::EventAnswer& out) const;

  Result<void> create_id(Call& call);
  Result<void> destroy_id(Call& call);
  Result<void> bind_ip(Call& call);
  Result<void> bind(Call& call);
  Result<void> resolve_ip(Call& call);
  Result<void> resolve_address(Call& call);
  Result<void> resolve_route(Call& call);
  Result<void> query_route(Call& call);
  Result<void> query(Call& call);
  Result<void> connect(Call& call);
  Result<void> listen(Call& call);
  Result<void> accept(Call& call);
  Result<void> reject(Call& call);
  Result<void> disconnect(Call& call);
  Result<void> init_qp_attr(Call& call);
  Result<void> get_event(Call& call);
  Result<void> set_option(Call& call);
  Result<void> notify(Call& call);
  Result<void> migrate_id(Call& call);
  Result<void> join_ip_multicast(Call& call);
  Result<void> join_multicast(Call& call);
  Result<void> join(Call& call, uint32_t number, uint64_t uid, const Result<CmAddress>& group);
  Result<void> leave_multicast(Call& call);
  Result<void> resolve_ib_service(Call& call);
  Result<void> write_event(Call& call);

  Ucma& ucma_;
  const Ucma::Credentials owner_;
  const std::function<void()> readable_;
  bool in_command_ = false;
  std::deque<Waiting> events_;
};

}  // namespace rocefs
