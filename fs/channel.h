// Channel: the path between the kernel and libfuse. Notes every request and every answer in the
// journal, so that another worker can continue when this one dies.
//
// Answers that changed something (a store, an open, a release …) are committed together with their
// effects before the kernel gets them. The kernel resends a request only until it has an answer
// (FUSE_NOTIFY_RESEND, Linux 6.9): the answer then comes from the journal or, if it is not there,
// the request is executed for the first time. Private to fs/.
#pragma once

#include <fuse_lowlevel.h>
#include <linux/fuse.h>

#include <cstdint>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/shares.h"
#include "core/takeover/fault.h"
#include "core/takeover/journal.h"

struct iovec;

namespace rocefs {

// Request number of the kernel without the mark of a resent request.
inline constexpr uint64_t kResendMark = uint64_t{1} << 63;
constexpr uint64_t key_of(uint64_t unique) {
  return unique & ~kResendMark;
}

// Answer whose delivery is unknown. A worker has at most one between commit and write, and resent
// requests come before all others, so this table is always large enough.
struct SavedReply {
  static constexpr size_t kMaxSize = 160;
  uint64_t key;  // 0: free
  uint32_t size;
  alignas(fuse_out_header) char bytes[kMaxSize];  // as libfuse wrote them
};

struct SavedChannel {
  static constexpr uint32_t kMaxWrite = 128 * 1024;
  static constexpr size_t kBufferSize = kMaxWrite + 4096;
  static constexpr size_t kMaxInFlight = 65536;
  static constexpr size_t kReplies = 64;
  static constexpr uint64_t kMaxDeaths = 3;
  uint32_t init_size;
  char init[512];  // FUSE_INIT, as the kernel asked it
  SavedReply replies[kReplies];
  // Buffer that requests are read into, so that none is lost when the worker dies. Its `len` is 0
  // while it is empty. The same request may also be in in_flight.
  alignas(4096) char buffer[kBufferSize];
  // Request that was being served when a worker died, and how many died so, one after the other.
  uint64_t deadly, deaths;
  uint64_t in_flight_limit;          // no slot from this one on was ever used
  uint64_t in_flight[kMaxInFlight];  // taken, not answered, not in the buffer; 0: free
};

class Channel;

// ChannelUser: the user data of the fuse_session that a Channel serves, as a ChannelUser*, both in
// handlers and in the channel's own read and write functions.
class ChannelUser {
 public:
  virtual ~ChannelUser() = default;
  virtual Channel& channel() = 0;
  // The caller of a request has a signal; the request may have been answered.
  virtual void interrupt(uint64_t key) = 0;
};

class Channel {
 public:
  enum class Received { kOne, kNothing, kGone };

  // `faults` may be null.
  Channel(Journal& journal, SavedChannel& saved, Faults* faults);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Makes `session` read and write `descriptor` through this channel. `user` is the user data of
  // `session`, and outlives the channel.
  Result<void> attach(fuse_session* session, int descriptor, ChannelUser& user);
  // Reads a request and has libfuse serve it. kGone: unmounted.
  Received receive();
  // Header of the message in progress, for the fields that libfuse hides.
  const fuse_in_header& request() const {
    return *reinterpret_cast<const fuse_in_header*>(saved_.buffer);
  }
  uint64_t key() const { return key_of(request().unique); }
  // Returns whether the request in progress was sent to a worker before.
  bool resent() const { return request().unique & kResendMark; }

  // Brings libfuse to the state that the dead worker had agreed with the kernel. Called once by a
  // worker that takes over.
  void replay_init();
  struct Outcome {
    size_t in_flight = 0;  // requests that the dead worker had taken and not answered
    bool resent = false;   // requests are sent again; otherwise they ended with EIO
  };
  // Settles the requests of the dead worker. Called once, when this worker is ready to serve
  // requests.
  Outcome settle_in_flight();
  // Makes the kernel's pollers of a handle poll again.
  void wake_pollers(uint64_t kernel_handle);

 private:
  struct Request {
    uint64_t key = 0;
    uint64_t unique = 0;
    uint32_t opcode = 0;
    uint32_t slot = 0;
    Shares::Share share = nullptr;  // of the places of requests that wait
  };

  ssize_t reply(int descriptor, iovec* parts, int count);
  void stage_reply(uint64_t key, const iovec* parts, int count);
  void serve(size_t size);
  bool answer_again(uint64_t unique);
  void refuse(uint64_t unique, int code);
  void interrupt();
  void keep(Request waiting);
  void forget(uint64_t key);
  std::set<uint64_t> left_in_flight() const;
  void count_death();
  SavedReply* find_reply(uint64_t key);
  bool kernel_resends() const;
  // Returns whether the kernel has this bit of `flags2`.
  bool offers(uint32_t flag2) const;
  void refuse_handles(const iovec& part);
  void fault(uint32_t opcode, std::string_view stage);

  Journal& journal_;
  SavedChannel& saved_;
  Faults* faults_;
  fuse_session* session_ = nullptr;
  ChannelUser* user_ = nullptr;
  int descriptor_ = -1;
  bool swallow_ = false;         // replies go nowhere
  Request current_;              // being served; key 0 once it is answered
  uint32_t committing_ = 0;      // opcode of the answer that is being committed
  SavedReply* reply_ = nullptr;  // where that answer is kept
  uint64_t last_reply_ = 0;
  std::unordered_map<uint64_t, Request> waiting_;  // answered later
  std::vector<uint32_t> free_slots_;
  Shares places_{SavedChannel::kMaxInFlight, SavedChannel::kMaxInFlight / 16};
};

}  // namespace rocefs
