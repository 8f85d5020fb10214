#include "core/tree/caller_file.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "core/base/clock.h"

namespace rocefs {
CallerFile::~CallerFile() {
  if (!owner_) return;
  owner_->files_.erase(this);
  if (socket_) owner_->loop_.unwatch(socket_.get());
}

void CallerFile::read(size_t slot, uint64_t offset, size_t size, Moved answer) {
  order({FileOrder::kRead, content_at_ + slot * kSlot, size, offset}, std::move(answer));
}

void CallerFile::write(size_t slot, uint64_t offset, size_t skip, size_t size, Moved answer) {
  writes_ = true;
  order({FileOrder::kWrite, content_at_ + slot * kSlot + skip, size, offset + skip},
        std::move(answer));
}

void CallerFile::truncate(Moved answer) {
  writes_ = true;
  order({FileOrder::kTruncate, 0, 0, 0}, std::move(answer));
}

void CallerFile::close(Moved answer) {
  order({FileOrder::kClose, 0, 0, 0},
        [this, answer = std::move(answer)](Result<uint64_t> closed) mutable {
          writes_ = false;
          answer(std::move(closed));
        });
}

void CallerFile::order(FileOrder order, Moved answer) {
  if (!socket_ || !owner_) return answer(why_);
  if (::send(socket_.get(), &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    return answer(errorf(EIO, "{}: its helper accepts no order: {}", path_, std::strerror(errno)));
  }
  if (owed_.empty()) heard_ = monotonic_ns();
  owed_.push_back(std::move(answer));
  owner_->arm();
}

Error CallerFile::failed(const FileReply& reply) const {
  int code = reply.code > 0 && reply.code < 4096 ? reply.code : EIO;
  switch (reply.why) {
    case FileReply::kReason: {
      const char* reason = memory_->at<FileRequest>(0)->reason;
      return Error{code, std::string(reason, ::strnlen(reason, sizeof FileRequest::reason))};
    }
    case FileReply::kTooMany:
      return errorf(code, "{}: too many files of this user are open", path_);
    case FileReply::kStuck:
      return errorf(code, "{}: too many files of this user do not answer", path_);
    case FileReply::kNoProcess:
      return errorf(code, "{}: cannot start a process to open it", path_);
    default:
      return errorf(code, "{}: {}", path_, std::strerror(code));
  }
}

void CallerFile::take_replies() {
  CallerFilePtr alive = shared_from_this();
  FileReply reply;
  while (socket_) {
    ssize_t got = ::recv(socket_.get(), &reply, sizeof reply, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got != sizeof reply) return give_up(errorf(EIO, "{}: its helper has died", path_));
    if (owed_.empty()) continue;
    heard_ = monotonic_ns();
    Moved answer = std::move(owed_.front());
    owed_.pop_front();
    if (reply.code != 0) {
      answer(failed(reply));
    } else {
      answer(reply.value);
    }
  }
}

void CallerFile::give_up(const Error& why) {
  if (!socket_) return;
  CallerFilePtr alive = shared_from_this();
  if (owner_) owner_->loop_.unwatch(socket_.get());
  socket_.reset();
  why_ = why;
  writes_ = false;
  for (Moved& answer : std::exchange(owed_, {})) answer(why);
}

TimeNs CallerFile::due() const {
  if (owed_.empty() || !owner_) return kNever;
  return heard_ + (open_ ? owner_->patience_ : kOpening);
}

CallerFiles::CallerFiles(PollLoop& loop, Say warn)
    : loop_(loop), warn_(std::move(warn)), timer_(loop, [this] { look_for_late(); }) {
  (void)start();
}

// Pending answers may hold the file that owes them.
CallerFiles::~CallerFiles() {
  std::vector<CallerFilePtr> all = shared();
  for (const CallerFilePtr& file : all) {
    if (file->socket_) loop_.unwatch(file->socket_.get());
    file->socket_.reset();
    file->owner_ = nullptr;
    file->owed_.clear();
  }
  if (agent_) loop_.unwatch(agent_->descriptor());
}

std::vector<CallerFilePtr> CallerFiles::shared() const {
  std::vector<CallerFilePtr> all;
  for (CallerFile* file : files_) all.push_back(file->shared_from_this());
  return all;
}

// Starts the agent, again after its death: the next path needs it.
bool CallerFiles::start() {
  Result<FileAgent> started = FileAgent::start();
  if (!started) {
    warn_(started.error().reason);
    return false;
  }
  agent_.emplace(std::move(*started));
  loop_.watch(agent_->descriptor(), [this] { take_end(); });
  return true;
}

void CallerFiles::take_end() {
  warn_(fmt::format("process {}, which opens files for writers, has died", agent_->pid()));
  loop_.unwatch(agent_->descriptor());
  agent_.reset();
}

CallerFilePtr CallerFiles::open(const IdentityPtr& who, const std::string& path, FileUse use,
                                Answer<void> opened) {
  auto file = CallerFilePtr(new CallerFile(*this, path));
  if (Result<void> prepared = prepare(*file, *who, use); !prepared) {
    opened(prepared.error());
    return nullptr;
  }
  files_.insert(file.get());
  std::weak_ptr<CallerFile> weak = file;
  loop_.watch(file->socket_.get(), [weak] {
    if (CallerFilePtr kept = weak.lock()) kept->take_replies();
  });
  file->heard_ = monotonic_ns();
  file->owed_.push_back(
      [raw = file.get(), opened = std::move(opened)](Result<uint64_t> size) mutable {
        if (!size) return opened(size.error());
        raw->size_ = *size;
        raw->open_ = true;
        opened({});
      });
  arm();
  return file;
}

// Prepares the helper's shared memory, and orders the helper.
Result<void> CallerFiles::prepare(CallerFile& file, const Identity& who, FileUse use) {
  if (!agent_ && !start()) return errorf(EAGAIN, "{}: no process opens files", file.path_);
  file.content_at_ = file_content_at(who.groups.size(), file.path_.size());
  size_t size = file.content_at_ + CallerFile::kSlots * CallerFile::kSlot;
  auto memory = SharedMemory::create("rocefs-file", size, SharedMemory::Others::kWrite);
  if (!memory) return errorf(memory.error().code, "{}: {}", file.path_, memory.error().reason);
  auto shared = std::make_shared<SharedMemory>(std::move(*memory));
  auto& request = *shared->at<FileRequest>(0);
  request.use = use;
  request.uid = who.uid;
  request.gid = who.gid;
  request.capabilities = who.capabilities;
  request.daemon = who.daemon;
  request.placed = static_cast<bool>(who.root);
  request.elsewhere = who.elsewhere;
  request.has_own_mount = own_mount_.has_value();
  request.own_mount = own_mount_.value_or(0);
  request.group_count = static_cast<uint32_t>(who.groups.size());
  request.path_size = static_cast<uint32_t>(file.path_.size());
  auto* groups = shared->at<gid_t>(sizeof request);
  std::copy(who.groups.begin(), who.groups.end(), groups);
  file.path_.copy(reinterpret_cast<char*>(groups + who.groups.size()), file.path_.size());
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return errorf(errno, "{}: {}", file.path_, std::strerror(errno));
  }
  file.socket_ = Fd(ends[0]);
  Fd theirs(ends[1]);
  if (int code = agent_->send({who.uid}, theirs.get(), shared->descriptor(), who.root.get(),
                              who.directory.get())) {
    file.socket_.reset();
    return errorf(EAGAIN, "{}: the process that opens files: {}", file.path_, std::strerror(code));
  }
  shared->close_descriptor();
  file.memory_ = std::move(shared);
  return {};
}

// Arms the timer for the first deadline at the latest.
void CallerFiles::arm() {
  if (std::exchange(armed_, true)) return;
  timer_.arm(CallerFile::kOpening);
}

void CallerFiles::look_for_late() {
  armed_ = false;
  TimeNs next = kNever;
  for (const CallerFilePtr& file : shared()) {
    file->take_replies();  // replies that came while this process did not run
    if (file->due() > monotonic_ns()) {
      next = std::min(next, file->due());
      continue;
    }
    file->give_up(errorf(ETIMEDOUT, "{}: its file system does not answer", file->path_));
  }
  if (next == kNever || std::exchange(armed_, true)) return;
  timer_.arm(next - monotonic_ns());
}

void CallerFiles::shorten_timeouts() {
  patience_ = CallerFile::kOpening;
  armed_ = true;
  timer_.arm(1);
}

void CallerFiles::finish() {
  shorten_timeouts();
  for (;;) {
    std::vector<pollfd> watched;
    std::vector<CallerFilePtr> writing;
    for (const CallerFilePtr& file : shared()) {
      if (!file->writes_ || file->owed_.empty()) continue;
      writing.push_back(file);
      watched.push_back({file->socket_.get(), POLLIN, 0});
    }
    if (writing.empty()) return;
    TimeNs first = kNever;
    for (const CallerFilePtr& file : writing) first = std::min(first, file->due());
    TimeNs left = std::max<TimeNs>(first - monotonic_ns(), 0);
    (void)::poll(watched.data(), watched.size(), static_cast<int>(left / kMillisecond) + 1);
    look_for_late();
  }
}

}  // namespace rocefs
