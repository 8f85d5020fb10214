#include "fs/session.h"

#include <fcntl.h>
#include <poll.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "fs/kernel_io.h"
#include "fs/log_capture.h"
#include "fs/mount_point.h"
#include "fs/session_impl.h"

namespace rocefs {
namespace {

constexpr int kRequestsPerTurn = 64;  // then the loop's other handlers get theirs

}  // namespace

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::create(SessionOptions options, Tree& tree,
                                                 PollLoop& loop) {
  auto impl = std::make_unique<Impl>(std::move(options), tree, loop);
  if (Result<void> created = impl->create(); !created) return created.error();
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

Result<void> Session::mount(const std::string& mount_point) {
  return impl_->mount(mount_point);
}

int Session::descriptor() const {
  return impl_->mounted_ ? fuse_session_fd(impl_->session_) : -1;
}

Result<void> Session::Impl::create() {
  char* mount_options = nullptr;
  fuse_opt_add_opt(&mount_options, "default_permissions,subtype=rocefs");
  fuse_opt_add_opt_escaped(&mount_options, ("fsname=" + options_.source).c_str());
  for (const std::string& option : options_.mount_options) {
    fuse_opt_add_opt(&mount_options, option.c_str());
  }
  fuse_args arguments = FUSE_ARGS_INIT(0, nullptr);
  fuse_opt_add_arg(&arguments, "rocefs");
  fuse_opt_add_arg(&arguments, "-o");
  fuse_opt_add_arg(&arguments, mount_options);
  std::free(mount_options);
  if (options_.debug) fuse_opt_add_arg(&arguments, "-d");
  LogCapture log;
  session_ = fuse_session_new(&arguments, &operations(), sizeof(fuse_lowlevel_ops), this);
  fuse_opt_free_args(&arguments);
  if (!session_) return Error{EINVAL, log.text()};
  notifier_ = std::make_shared<Notifier>(session_, loop_);
  tree_.set_listener(notifier_.get());
  return {};
}

Result<void> Session::Impl::mount(const std::string& mount_point) {
  {
    LogCapture log;
    StderrCapture printed;
    errno = 0;
    if (fuse_session_mount(session_, mount_point.c_str()) != 0) {
      int code = errno ? errno : EIO;
      std::string why = printed.text();
      if (why.empty()) why = log.text();
      return Error{code, why.empty() ? std::strerror(code) : why};
    }
  }
  mounted_ = true;
  mount_point_ = mount_point;
  device_ = mounted_device(mount_point);
  int fd = fuse_session_fd(session_);
  const fuse_custom_io io = kernel_io();
  if (int code = -fuse_session_custom_io(session_, &io, fd)) {
    return Error{code, "libfuse refuses the way to its device"};
  }
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  loop_.watch(fd, [this] { receive(); });
  return {};
}

void Session::Impl::receive() {
  for (int i = 0; i < kRequestsPerTurn; ++i) {
    int got = fuse_session_receive_buf(session_, &buffer_);
    if (got == -EINTR) continue;
    if (got == -EAGAIN) return;
    if (got > 0) {
      fuse_session_process_buf(session_, &buffer_);
      continue;
    }
    // 0 or ENODEV: unmounted.
    loop_.unwatch(fuse_session_fd(session_));
    mounted_ = false;
    if (options_.unmounted) options_.unmounted();
    return;
  }
}

// A message of the notifier may wait for a lock whose holder waits for us.
void Session::Impl::serve_until_idle(int idle) {
  pollfd watched[] = {{fuse_session_fd(session_), POLLIN, 0}, {idle, POLLIN, 0}};
  while (mounted_) {
    if (::poll(watched, 2, -1) < 0 && errno != EINTR) return;
    if (watched[1].revents) return;
    if (watched[0].revents) receive();
  }
}

Session::Impl::~Impl() {
  tree_.set_listener(nullptr);
  if (!session_) return;
  options_.unmounted = nullptr;
  serve_until_idle(notifier_->begin_close());
  if (mounted_) loop_.unwatch(fuse_session_fd(session_));
  requests_->close();
  fuse_session_unmount(session_);
  // libfuse leaves a mount whose connection was cut (umount -f) to its fate.
  if (device_ && mounted_device(mount_point_) == device_) unmount_lazily(mount_point_);
  notifier_->close();
  files_ = {};
  fuse_session_destroy(session_);
  std::free(buffer_.mem);
}

}  // namespace rocefs
