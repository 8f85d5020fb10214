#include "fs/socket_binder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/process/close_all_but.h"
#include "fs/namespaces.h"

namespace rocefs {
namespace {

Error failure(const std::string& what) {
  return errorf(errno, "{}: {}", what, std::strerror(errno));
}

// Binds the socket, in the child process.
Result<void> bind_in_clone(const std::string& mount_point, const std::string& path, int socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Error{ENAMETOOLONG, path + ": too long"};
  path.copy(address.sun_path, path.size());
  if (Result<void> entered = enter_private_mounts({mount_point}); !entered) return entered;
  Fd clone(::open_tree(AT_FDCWD, mount_point.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  if (!clone || ::fchdir(clone.get()) != 0) return failure(mount_point);
  if (::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return failure(path);
  }
  return {};
}

// Runs the child, which keeps only two descriptors open: above all not the connection that it waits
// for.
[[noreturn]] void live_as_child(const std::string& mount_point, const std::string& path, Fd socket,
                                Fd report) {
  close_all_but(socket.get(), report.get());
  Result<void> bound = bind_in_clone(mount_point, path, socket.get());
  if (!bound) {
    int code = bound.error().code;
    std::string text(reinterpret_cast<const char*>(&code), sizeof code);
    text += bound.error().reason;
    (void)!::write(report.get(), text.data(), text.size());
  }
  ::_exit(bound ? 0 : 1);
}

}  // namespace

SocketBinder::SocketBinder(std::string mount_point, std::string path, PollLoop& loop,
                           Answer<Fd> done)
    : mount_point_(std::move(mount_point)),
      path_(std::move(path)),
      loop_(loop),
      done_(std::move(done)) {
  start();
}

void SocketBinder::start() {
  socket_ = Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int ends[2];
  if (!socket_ || ::pipe2(ends, O_CLOEXEC) != 0) return finish(failure("a socket"));
  report_ = Fd(ends[0]);
  Fd theirs(ends[1]);
  child_ = ::fork();
  if (child_ < 0) return finish(failure("fork"));
  if (child_ == 0) live_as_child(mount_point_, path_, std::move(socket_), std::move(theirs));
  loop_.watch(report_.get(), [this] { hear(); });
}

// Reads the child's report. The wait for its exit is short: it closes the pipe last.
void SocketBinder::hear() {
  char text[512];
  ssize_t got = ::read(report_.get(), text, sizeof text);
  if (got > 0) return void(said_.append(text, static_cast<size_t>(got)));
  loop_.unwatch(report_.get());
  int status = 0, code = 0;
  ::waitpid(std::exchange(child_, 0), &status, 0);
  if (said_.size() > sizeof code) {
    std::memcpy(&code, said_.data(), sizeof code);
    return finish(Error{code, said_.substr(sizeof code)});
  }
  if (status != 0) return finish(Error{EIO, "the child that binds the socket died"});
  if (::listen(socket_.get(), SOMAXCONN) != 0) return finish(failure(path_));
  finish(std::move(socket_));
}

// Calls `done` later, so that the caller of the constructor has the object first.
void SocketBinder::finish(Result<Fd> result) {
  loop_.post(
      [done = std::move(done_), result = std::move(result)]() mutable { done(std::move(result)); });
}

SocketBinder::~SocketBinder() {
  if (child_ <= 0) return;
  loop_.unwatch(report_.get());
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
}

}  // namespace rocefs
