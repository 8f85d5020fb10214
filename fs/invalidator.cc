#include "fs/invalidator.h"

#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace rocefs {
namespace {

constexpr int kPatienceMs = 1000;

// Message with room for a descriptor. Not movable: `header` points into it.
struct Letter {
  Letter(void* bytes, size_t size) : part{bytes, size} {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = &space;
    header.msg_controllen = sizeof space;
  }
  Letter(const Letter&) = delete;
  Letter& operator=(const Letter&) = delete;

  iovec part;
  msghdr header{};
  union {
    cmsghdr descriptor;
    char bytes[CMSG_SPACE(sizeof(int))];
  } space{};
};

// Writes notifications one by one. Ignores refusals: the kernel need not forget what it does not
// know.
void pass_on(int connection, const char* bytes, size_t size) {
  while (size >= sizeof(fuse_out_header)) {
    fuse_out_header header;
    std::memcpy(&header, bytes, sizeof header);
    if (header.len < sizeof header || header.len > size) return;
    (void)!::write(connection, bytes, header.len);
    bytes += header.len;
    size -= header.len;
  }
}

// Runs the child, which may have been forked beside other threads: allocates nothing, takes no
// lock, and keeps only its socket open. Another descriptor could hide its parent's death from the
// parent's peers.
[[noreturn]] void live(int socket) {
  ::dup2(socket, 0);
  ::close_range(1, ~0u, 0);
  (void)!::chdir("/");
  ::prctl(PR_SET_NAME, "rocefs-notifier");
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);  // ends with its worker
  int connection = -1;
  for (;;) {
    char bytes[Invalidator::kMaxSize];
    Letter letter(bytes, sizeof bytes);
    ssize_t got = ::recvmsg(0, &letter.header, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) ::_exit(0);
    cmsghdr* with = CMSG_FIRSTHDR(&letter.header);
    if (with && with->cmsg_type == SCM_RIGHTS) {
      if (connection >= 0) ::close(connection);
      std::memcpy(&connection, CMSG_DATA(with), sizeof connection);
      continue;
    }
    pass_on(connection, bytes, static_cast<size_t>(got));
    (void)!::send(0, bytes, 1, MSG_NOSIGNAL);
  }
}

}  // namespace

Result<Invalidator> Invalidator::start() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return errorf(errno, "a socket for the notifier: {}", std::strerror(errno));
  }
  Fd ours(ends[0]), theirs(ends[1]);
  pid_t process = ::fork();
  if (process < 0) return errorf(errno, "no process for the notifier: {}", std::strerror(errno));
  if (process == 0) live(theirs.get());
  return Invalidator(std::move(ours), process);
}

Invalidator& Invalidator::operator=(Invalidator&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(process_, other.process_);
  return *this;
}

Invalidator::~Invalidator() {
  if (process_ <= 0) return;
  // Shut down explicitly: a child forked meanwhile may have a copy of the socket, so close alone
  // would not end it.
  ::shutdown(socket_.get(), SHUT_RDWR);
  socket_.reset();
  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, process_, 0)));
  pollfd ended{process.get(), POLLIN, 0};
  if (process) ::poll(&ended, 1, kPatienceMs);
  ::waitpid(process_, nullptr, WNOHANG);
}

bool Invalidator::use(int connection) {
  char nothing = 0;
  Letter letter(&nothing, 1);
  cmsghdr& with = letter.space.descriptor;
  with.cmsg_level = SOL_SOCKET;
  with.cmsg_type = SCM_RIGHTS;
  with.cmsg_len = CMSG_LEN(sizeof connection);
  std::memcpy(CMSG_DATA(&with), &connection, sizeof connection);
  return ::sendmsg(socket_.get(), &letter.header, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

bool Invalidator::send(std::string_view notifications) {
  return ::send(socket_.get(), notifications.data(), notifications.size(),
                MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

}  // namespace rocefs
