// Session of a user's program: a socket in the mounted tree (rdma/uapi/uapi.h).
#include <errno.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "core/base/fd.h"
#include "core/base/passed_descriptors.h"
#include "pcc/api/engine_session.h"
#include "pcc/api/mount.h"
#include "pcc/api/register_pages.h"
#include "rdma/uapi/peer.h"
#include "rdma/uapi/uapi.h"

namespace rocefs {
namespace {

constexpr timeval kPatience{30, 0};

mango_status_e status_of(int error) {
  switch (error) {
    case 0:
      return MANGO_STATUS_OK;
    case ENODEV:
    case ENOENT:
      return MANGO_STATUS_NO_DEVICE;
    case EBUSY:
      return MANGO_STATUS_BUSY;
    case EOPNOTSUPP:
    case EPROTO:
      return MANGO_STATUS_NOT_SUPPORTED;
    case EACCES:
    case EPERM:
      return MANGO_STATUS_PERMISSION;
    case ENOMEM:
      return MANGO_STATUS_NO_MEMORY;
    case EINVAL:
      return MANGO_STATUS_INVALID_PARAM;
    case ETIMEDOUT:
      return MANGO_STATUS_TIMEOUT;
    default:
      return MANGO_STATUS_IO;
  }
}

// Receives one message of exactly `size` octets with up to two descriptors. Returns 0 or an errno;
// ENODEV if the other end is closed: the device or the mount has gone.
int receive(int socket, void* data, size_t size, Fd (&descriptors)[2]) {
  ssize_t got = receive_message(socket, data, size, descriptors);
  if (got == 0 || (got < 0 && errno == ECONNRESET)) return ENODEV;
  if (got < 0 && errno == EAGAIN) return ETIMEDOUT;
  if (got < 0 && errno != EMSGSIZE) return errno;
  return static_cast<size_t>(got) == size ? 0 : EPROTO;
}

class ProgramSession final : public EngineSession {
 public:
  // Functions below return errnos.
  int open(const char* device);
  mango_status_e run(unsigned pollers, Pages* pages) override;
  void stop() override;
  void log(mango_log_level_e level, std::string_view text) override;

 private:
  int connect(const std::string& root);
  int exchange(const rocefs_request& request, Fd (&descriptors)[2]);

  std::mutex mutex_;  // one request at a time
  int broken_ = 0;    // errno of the protocol error that ended the exchange, or 0
  Fd socket_;
  RegisterPages pages_;
};

int ProgramSession::connect(const std::string& root) {
  Fd door(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!door) return errno;
  ::setsockopt(door.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  ::setsockopt(door.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  if (int error = rocefs_connect_in(door.get(), root.c_str())) return error;
  uid_t peer;
  if (!rocefs_trusts_peer(door.get(), &peer)) {
    std::fprintf(stderr,
                 "libmango: %s is served by user %u, who is neither root nor you: refused\n",
                 root.c_str(), static_cast<unsigned>(peer));
    return EPERM;
  }
  rocefs_greeting greeting{};
  Fd received[2];
  if (int error = receive(door.get(), &greeting, sizeof greeting, received)) return error;
  if (greeting.magic == ROCEFS_UAPI_REFUSAL) return EUSERS;
  if (greeting.magic != ROCEFS_UAPI_MAGIC || !received[0]) return EPROTO;
  if (greeting.version != ROCEFS_UAPI_VERSION) {
    char why[128];
    rocefs_part_from(received[0].get(), greeting.version, "this libmango", why, sizeof why);
    std::fprintf(stderr, "libmango: %s: %s\n", root.c_str(), why);
    return EPROTO;
  }
  socket_ = std::move(received[0]);
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  return 0;
}

int ProgramSession::open(const char* device) {
  std::string root = find_mount();
  if (root.empty()) return ENODEV;
  if (int error = connect(root)) return error;
  rocefs_request request{};
  request.op = ROCEFS_OP_PCC_CLAIM;
  rocefs_pcc_claim& claim = request.u.claim;
  claim.magic = ROCEFS_UAPI_MAGIC;
  claim.version = ROCEFS_UAPI_VERSION;
  if (std::strlen(device) >= sizeof claim.device) return ENODEV;
  std::memcpy(claim.device, device, std::strlen(device));
  std::snprintf(claim.comm, sizeof claim.comm, "%s", program_invocation_short_name);
  Fd none[2];
  return exchange(request, none);
}

// Fails for good after a protocol error: a late answer could be taken for that of another request.
int ProgramSession::exchange(const rocefs_request& request, Fd (&descriptors)[2]) {
  std::lock_guard lock(mutex_);
  if (broken_) return broken_;
  int error = send_message(socket_.get(), &request, sizeof request);
  if (error == EPIPE || error == ECONNRESET) error = ENODEV;
  rocefs_answer answer{};
  if (!error) error = receive(socket_.get(), &answer, sizeof answer, descriptors);
  broken_ = error;
  return error ? error : answer.error;
}

mango_status_e ProgramSession::run(unsigned pollers, Pages* pages) {
  rocefs_request request{};
  request.op = ROCEFS_OP_PCC_RUN;
  request.u.run.pollers = pollers;
  Fd received[2];
  if (int error = exchange(request, received)) return status_of(error);
  int error = received[0] && received[1] ? 0 : EMFILE;
  if (!error) error = pages_.map(received[0].get(), received[1].get());
  if (uint32_t version = pages_.other_version()) {
    std::fprintf(stderr,
                 "libmango: the engine has register pages of version %u, this libmango %u\n",
                 static_cast<unsigned>(version), static_cast<unsigned>(ROCEFS_REGISTERS_VERSION));
  }
  if (error) {
    stop();
    return status_of(error);
  }
  *pages = {pages_.signals(), pages_.control()};
  return MANGO_STATUS_OK;
}

void ProgramSession::stop() {
  rocefs_request request{};
  request.op = ROCEFS_OP_PCC_STOP;
  Fd none[2];
  exchange(request, none);
}

void ProgramSession::log(mango_log_level_e level, std::string_view text) {
  rocefs_request request{};
  request.op = ROCEFS_OP_PCC_LOG;
  request.u.log.level = static_cast<uint32_t>(level);
  std::memcpy(request.u.log.text, text.data(), std::min(text.size(), sizeof request.u.log.text));
  // SOCK_SEQPACKET sends a whole message; no lock is needed beside another thread's request.
  (void)!::send(socket_.get(), &request, sizeof request, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

std::unique_ptr<EngineSession> open_program_session(const char* device, mango_status_e* status) {
  auto session = std::make_unique<ProgramSession>();
  *status = status_of(session->open(device));
  if (*status != MANGO_STATUS_OK) return nullptr;
  return session;
}

}  // namespace rocefs
