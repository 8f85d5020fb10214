#include "fs/fuse_server.h"

#include <fcntl.h>
#include <poll.h>
#include <syslog.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "fs/log_capture.h"
#include "fs/mount_point.h"

namespace rocefs {
namespace {

constexpr int kRequestsPerTurn = 64;  // then the loop's other handlers get theirs

// Size of the largest transaction of a session by itself: an open and its answer.
constexpr size_t kOwnRecord = 16 * 1024;

std::unique_ptr<Journal> make_journal(const SessionOptions& options) {
  if (options.journal) return nullptr;
  auto made = Journal::create(sizeof(SavedSession), kOwnRecord);
  if (!made) throw std::bad_alloc();
  return std::move(*made);
}

}  // namespace

FuseServer::FuseServer(SessionOptions options, Tree& tree, PollLoop& loop)
    : options_(std::move(options)),
      tree_(tree),
      loop_(loop),
      requests_(std::make_shared<Requests>(loop, options_.refused, options_.stored)),
      own_journal_(make_journal(options_)),
      journal_(own_journal_ ? *own_journal_ : *options_.journal),
      saved_(own_journal_ ? own_journal_->state<SavedSession>() : *options_.saved),
      channel_(journal_, saved_.channel, options_.faults),
      files_(journal_, saved_.files),
      directories_(journal_, saved_.directories) {}

Result<void> FuseServer::create() {
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
  session_ = fuse_session_new(&arguments, &operations(), sizeof(fuse_lowlevel_ops),
                              static_cast<ChannelUser*>(this));
  fuse_opt_free_args(&arguments);
  if (!session_) return Error{EINVAL, log.text()};
  if (!options_.invalidator) {
    Result<Invalidator> started = Invalidator::start();
    if (!started) return started.error();
    options_.invalidator = std::move(*started);
  }
  auto stalled = [this](Ino directory) {
    if (!options_.refused) return;
    const Caller own{::getuid(), ::getgid(), ::getpid()};
    options_.refused(tree_.path_of(directory), own,
                     Error{ETIMEDOUT,
                           "a program holds this directory: others may not see what "
                           "has changed in it"});
  };
  notifier_ = std::make_shared<Notifier>(loop_, std::move(options_.invalidator), stalled);
  tree_.set_listener(notifier_.get());
  return {};
}

Result<void> FuseServer::mount(const std::string& mount_point) {
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
  int descriptor = fuse_session_fd(session_);
  if (Result<void> attached = channel_.attach(session_, descriptor, *this); !attached)
    return attached;
  // INIT comes before mount(2) returns. A worker that takes over later needs it to have been
  // answered.
  if (channel_.receive() != Channel::Received::kOne) return Error{EIO, "FUSE: no INIT"};
  if (fuse_session_exited(session_)) return Error{EIO, "FUSE: INIT was refused"};
  device_ = mounted_device(mount_point);
  journal_.stage(saved_.device, device_.value_or(0));
  journal_.commit();
  return serve(mount_point, descriptor);
}

Result<void> FuseServer::serve(const std::string& mount_point, int descriptor) {
  mounted_ = true;
  mount_point_ = mount_point;
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  loop_.watch(descriptor, [this] { receive(); });
  notifier_->connect(descriptor);
  return {};
}

namespace {

// GoneFile: stands for a file that no longer exists, or for a device whose state died with its
// worker.
class GoneFile final : public OpenFile {
 public:
  void read(uint64_t, size_t, const OperationPtr&, Answer<std::string> answer) override {
    answer(kGone);
  }
  void write(std::string_view, const OperationPtr&, Answer<size_t> answer) override {
    answer(kGone);
  }
  short poll(Task) override { return POLLERR | POLLHUP | POLLPRI; }
  void ioctl(uint32_t, std::string_view, size_t, const OperationPtr&,
             Answer<IoctlReply> answer) override {
    answer(kGone);
  }

 private:
  const Error kGone{ENODEV, "lost with the worker that served it"};
};

}  // namespace

OpenSlot FuseServer::reopen(const SavedHandle& saved) {
  Tree::Node* node = tree_.find(saved.ino);
  if (node && node->file && !node->file->device()) {
    auto opener = std::make_shared<Opener>(Caller{saved.uid, saved.gid, saved.pid});
    auto file = node->file->open(node->file, opener->caller);
    if (file) return {std::move(*file), tree_.path_of(saved.ino), std::move(opener)};
  }
  return {std::make_unique<GoneFile>(), {}, nullptr};
}

Result<TakenOver> FuseServer::take_over(const std::string& mount_point, int descriptor) {
  if (Result<void> attached = channel_.attach(session_, descriptor, *this); !attached) {
    return attached.error();
  }
  taken_over_ = true;
  if (saved_.device != 0) device_ = saved_.device;
  // Nodes that the kernel names by number: those that it has looked up.
  tree_.fill_where([this](Ino directory) { return saved_.lookups.may_have(directory); });
  channel_.replay_init();
  TakenOver taken;
  taken.open_files = files_.restore([this](const SavedHandle& saved) { return reopen(saved); });
  directories_.restore([this](const SavedHandle& saved) {
    Tree::Node* node = tree_.find(saved.ino);
    return DirectorySlot{list(node ? *node : *tree_.find(kRootIno))};
  });
  Channel::Outcome outcome = channel_.settle_in_flight();
  taken.in_flight = outcome.in_flight;
  taken.resent = outcome.resent;
  if (options_.faults) options_.faults->point("resend");
  for (uint64_t handle = 0; handle < saved_.files.limit; ++handle) {
    const SavedHandle& saved = saved_.files.slots[handle];
    if (saved.ino != 0 && saved.poll_handle != 0) channel_.wake_pollers(saved.poll_handle);
  }
  if (Result<void> served = serve(mount_point, descriptor); !served) return served.error();
  return taken;
}

void FuseServer::receive() {
  for (int i = 0; i < kRequestsPerTurn; ++i) {
    Channel::Received received = channel_.receive();
    if (received == Channel::Received::kOne) continue;
    if (received == Channel::Received::kNothing) return;
    loop_.unwatch(fuse_session_fd(session_));
    mounted_ = false;
    if (options_.unmounted) options_.unmounted();
    return;
  }
}

// Serves until the notifier has drained: a message of it may wait for a lock whose holder waits for
// us.
void FuseServer::serve_until_drained() {
  notifier_->begin_close();
  while (mounted_ && !notifier_->drained()) {
    pollfd watched[] = {{fuse_session_fd(session_), POLLIN, 0}, {notifier_->socket(), POLLIN, 0}};
    if (::poll(watched, 2, -1) < 0 && errno != EINTR) return;
    if (watched[1].revents) notifier_->hear();
    if (watched[0].revents) receive();
  }
}

namespace {

// Makes the descriptor one whose other end is closed. libfuse takes that for a mount that is gone:
// by itself it would unmount whatever its path leads to by now.
void close_far_end(int descriptor) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  ::close(ends[0]);
  ::dup2(ends[1], descriptor);
  ::close(ends[1]);
}

}  // namespace

// Unmounts, unless the path leads elsewhere by now, or the mount is gone. A mount that is dead,
// also because its connection was cut (umount -f), is recognized by that.
void FuseServer::end_mount() {
  pollfd connection{fuse_session_fd(session_), 0, 0};
  bool connected = mounted_ && ::poll(&connection, 1, 0) == 0;
  if (connected && device_ && !unmount_own(mount_point_, *device_)) {
    // A daemon has no stderr that somebody reads.
    const std::string left = mount_point_ +
                             ": nothing is unmounted: another mount is there now, or this one "
                             "may not be unmounted";
    ::syslog(LOG_DAEMON | LOG_WARNING, "%s", left.c_str());
    std::fprintf(stderr, "rocefs: %s\n", left.c_str());
  }
  if (device_ && fuse_session_fd(session_) >= 0) close_far_end(fuse_session_fd(session_));
  fuse_session_unmount(session_);
  if (device_) unmount_dead(mount_point_);
}

FuseServer::~FuseServer() {
  tree_.set_listener(nullptr);
  if (!session_) return;
  options_.unmounted = nullptr;
  serve_until_drained();
  if (mounted_) loop_.unwatch(fuse_session_fd(session_));
  requests_->close();
  notifier_->close();
  end_mount();
  files_.clear();
  fuse_session_destroy(session_);
  binder_.reset();
}

}  // namespace rocefs
