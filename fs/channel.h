// Channel: the road between the kernel and libfuse, along which every request and every answer is
// noted in the journal, so that another worker can go on when this one dies.
//
// An answer that changed something (a store, an open, a release …) is committed together with its
// effects before the kernel gets it. The kernel sends a request again only as long as it has no
// answer to it (FUSE_NOTIFY_RESEND, Linux 6.9): it is then answered from the journal, or, if its
// answer is not there, done now for the first time. Private to fs/.
#pragma once

#include <fuse_lowlevel.h>
#include <linux/fuse.h>

#include <cstdint>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/takeover/fault.h"
#include "core/takeover/journal.h"

struct iovec;

namespace rocefs {

// The kernel's request number without the mark of one that is sent again.
inline constexpr uint64_t kResendMark = uint64_t{1} << 63;
constexpr uint64_t key_of(uint64_t unique) {
  return unique & ~kResendMark;
}

// An answer whose fate is unknown. A worker has at most one between its commit and its write, and
// what the kernel sends again comes before all else, so that these are more than can be wanted.
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
  uint32_t init_size;
  char init[512];  // FUSE_INIT, as the kernel asked it
  SavedReply replies[kReplies];
  // Requests are read to this place, so that none is lost between the kernel and us. Its `len` is 0
  // while it holds none. The same request may also stand in in_flight.
  alignas(4096) char buffer[kBufferSize];
  uint64_t in_flight_limit;          // no slot from this one on was ever used
  uint64_t in_flight[kMaxInFlight];  // taken, not answered, not in the buffer; 0: free
};

class Channel;

// The user data of the fuse_session that a Channel serves: libfuse hands it to handlers and to the
// channel's own input and output alike, as a ChannelUser*.
class ChannelUser {
 public:
  virtual ~ChannelUser() = default;
  virtual Channel& channel() = 0;
};

class Channel {
 public:
  enum class Received { kOne, kNothing, kGone };

  // `faults` may be null.
  Channel(Journal& journal, SavedChannel& saved, Faults* faults);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // From now on `session` reads and writes `descriptor` through this. Its user data is a
  // ChannelUser* of this channel.
  Result<void> attach(fuse_session* session, int descriptor);
  // Reads a request and has libfuse serve it. kGone: unmounted.
  Received receive();
  // What the kernel gave to libfuse last: the message under way, for what libfuse hides of it.
  const fuse_in_header& request() const {
    return *reinterpret_cast<const fuse_in_header*>(saved_.buffer);
  }
  // Whether the request under way was sent to a worker before.
  bool resent() const { return request().unique & kResendMark; }

  // Once, by a worker that takes over: brings libfuse to the state that the dead one had agreed
  // with the kernel.
  void replay_init();
  struct Outcome {
    size_t in_flight = 0;  // requests that the dead worker had taken and not answered
    bool resent = false;   // they come again; if not, they ended with EIO
  };
  // Once, when everything is there to serve requests.
  Outcome settle_in_flight();
  // Makes the kernel's pollers of a handle ask again.
  void wake_pollers(uint64_t kernel_handle);

 private:
  struct Request {
    uint64_t key = 0;
    uint64_t unique = 0;
    uint32_t opcode = 0;
    uint32_t slot = 0;
  };

  ssize_t reply(int descriptor, iovec* parts, int count);
  void stage_reply(uint64_t key, const iovec* parts, int count);
  void serve(size_t size);
  bool answer_again(uint64_t unique);
  void refuse(uint64_t unique, int code);
  void keep(const Request& request);
  void forget(uint64_t key);
  std::set<uint64_t> left_in_flight() const;
  SavedReply* find_reply(uint64_t key);
  bool kernel_resends() const;
  // Whether the kernel has this bit of `flags2`.
  bool offers(uint32_t flag2) const;
  void refuse_handles(const iovec& part);
  void fault(uint32_t opcode, std::string_view stage);

  Journal& journal_;
  SavedChannel& saved_;
  Faults* faults_;
  fuse_session* session_ = nullptr;
  int descriptor_ = -1;
  bool swallow_ = false;         // replies go nowhere
  Request current_;              // being served; key 0 once it is answered
  uint32_t committing_ = 0;      // opcode of the answer that is being committed
  SavedReply* reply_ = nullptr;  // where that answer is kept
  uint64_t last_reply_ = 0;
  std::unordered_map<uint64_t, Request> waiting_;  // answered later
  std::vector<uint32_t> free_slots_;
};

}  // namespace rocefs
