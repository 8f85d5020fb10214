#include "core/process/file_helper.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "core/base/result.h"

namespace rocefs {
namespace {

Error file_failure(std::string_view what) {
  return errorf(errno, "{}: {}", what, std::strerror(errno));
}

void end_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
}

// Drops every capability that the writer does not have.
Result<void> keep_capabilities(uint64_t allowed) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2];
  if (::syscall(SYS_capget, &header, data) != 0) return file_failure("capabilities");
  for (int i : {0, 1}) {
    data[i].permitted &= static_cast<uint32_t>(allowed >> (32 * i));
    data[i].effective = data[i].permitted;
    data[i].inheritable = 0;
  }
  if (::syscall(SYS_capset, &header, data) != 0) return file_failure("capabilities");
  return {};
}

Result<void> take_credentials(const FileRequest& request, const gid_t* groups, pid_t agent) {
  bool same = request.uid == ::geteuid() && request.gid == ::getegid();
  if (::geteuid() != 0 && !same) {
    return errorf(EPERM, "the daemon of user {} cannot open files as user {}", ::geteuid(),
                  request.uid);
  }
  if (::geteuid() == 0) {
    if (::setgroups(request.group_count, groups) != 0 && !same) return file_failure("setgroups");
    if (!same && (::setresgid(request.gid, request.gid, request.gid) != 0 ||
                  ::setresuid(request.uid, request.uid, request.uid) != 0)) {
      return file_failure("the credentials of the writer");
    }
  }
  // PR_SET_PDEATHSIG is cleared with every change of credentials.
  end_with_parent(agent);
  return keep_capabilities(request.capabilities);
}

// Enters the directory with the writer's rights: some file systems admit only that user.
Result<void> become(const FileRequest& request, const gid_t* groups, const std::string& path,
                    const Fd& root, const Fd& directory, pid_t agent) {
  bool full = path.starts_with('/');
  if (!request.placed && !full) {
    return Error{EINVAL, "the writer's directory is not visible to the daemon: name a full path"};
  }
  if (request.daemon) return {};
  if (request.placed && request.elsewhere && (::fchdir(root.get()) != 0 || ::chroot(".") != 0)) {
    return file_failure("entering the root directory of the writer");
  }
  if (Result<void> taken = take_credentials(request, groups, agent); !taken) return taken;
  if (request.placed && ::fchdir(directory.get()) != 0 && !full) {
    return file_failure("the directory of the writer");
  }
  return {};
}

int flags_of(FileUse use) {
  if (use == FileUse::kRead) return O_RDONLY;
  return O_WRONLY | O_CREAT | (use == FileUse::kReplace ? O_TRUNC : 0);
}

// Checks before truncating: a path on the mount itself, or a FIFO, is not touched.
Result<Fd> open_file(const FileRequest& request, const std::string& path) {
  auto own = [&](const struct stat& status) {
    return request.has_own_mount && status.st_dev == request.own_mount;
  };
  struct stat status;
  if (Fd there(::open(path.c_str(), O_PATH | O_CLOEXEC)); there) {
    if (::fstat(there.get(), &status) != 0) return file_failure(path);
    if (own(status)) return errorf(EINVAL, "{}: lies on this mount itself", path);
    if (S_ISDIR(status.st_mode)) {
      errno = EISDIR;
      return file_failure(path);
    }
    if (!S_ISREG(status.st_mode)) return errorf(EINVAL, "{}: not a regular file", path);
  }
  Fd fd(::open(path.c_str(), flags_of(request.use) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644));
  if (!fd || ::fstat(fd.get(), &status) != 0) return file_failure(path);
  if (!S_ISREG(status.st_mode) || own(status)) {
    return errorf(EINVAL, "{}: not a regular file", path);
  }
  return fd;
}

Result<void> look_for_directory(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return file_failure(path);
  if (S_ISDIR(status.st_mode)) return {};
  errno = ENOTDIR;
  return file_failure(path);
}

class Helper {
 public:
  Helper(Fd socket, uint8_t* memory, pid_t agent)
      : socket_(std::move(socket)), memory_(memory), agent_(agent) {}

  bool open(const Fd& root, const Fd& directory) {
    auto& request = *reinterpret_cast<FileRequest*>(memory_);
    auto* groups = reinterpret_cast<const gid_t*>(&request + 1);
    std::string path(reinterpret_cast<const char*>(groups + request.group_count),
                     request.path_size);
    Result<uint64_t> opened = open_as(request, groups, path, root, directory);
    if (opened) return answer({0, FileReply::kNone, *opened});
    size_t size = opened.error().reason.copy(request.reason, sizeof request.reason - 1);
    request.reason[size] = 0;
    answer({opened.error().code, FileReply::kReason, 0});
    return false;
  }

  // Runs until the daemon has closed the file, or has given it up.
  void serve() {
    for (FileOrder order; ::recv(socket_.get(), &order, sizeof order, 0) == sizeof order;) {
      int64_t done = carry_out(order);
      FileReply reply{done < 0 ? errno : 0, FileReply::kNone, done < 0 ? 0 : uint64_t(done)};
      if (!answer(reply) || order.what == FileOrder::kClose) return;
    }
  }

 private:
  Result<uint64_t> open_as(const FileRequest& request, const gid_t* groups, const std::string& path,
                           const Fd& root, const Fd& directory) {
    if (Result<void> became = become(request, groups, path, root, directory, agent_); !became) {
      return became.error();
    }
    if (request.use == FileUse::kDirectory) {
      if (Result<void> looked = look_for_directory(path); !looked) return looked.error();
      return uint64_t{0};
    }
    Result<Fd> file = open_file(request, path);
    if (!file) return file.error();
    file_ = std::move(*file);
    struct stat status;
    if (::fstat(file_.get(), &status) != 0) return file_failure(path);
    return static_cast<uint64_t>(status.st_size);
  }

  bool answer(const FileReply& reply) {
    return ::send(socket_.get(), &reply, sizeof reply, MSG_NOSIGNAL) == sizeof reply;
  }

  int64_t carry_out(const FileOrder& order) {
    switch (order.what) {
      case FileOrder::kTruncate:
        return ::ftruncate(file_.get(), static_cast<off_t>(order.offset));
      case FileOrder::kClose:  // tells of what write() could not know yet
        return ::close(file_.release());
      default:
        return move(order);
    }
  }

  // Moves as much as there is, or fits. An error after a part is met again with the rest.
  int64_t move(const FileOrder& order) {
    size_t done = 0;
    while (done < order.size) {
      uint8_t* at = memory_ + order.memory + done;
      auto offset = static_cast<off_t>(order.offset + done);
      ssize_t part = order.what == FileOrder::kRead
                         ? ::pread(file_.get(), at, order.size - done, offset)
                         : ::pwrite(file_.get(), at, order.size - done, offset);
      if (part < 0 && errno == EINTR) continue;
      if (part < 0 && done == 0) return -1;
      if (part <= 0) break;
      done += static_cast<size_t>(part);
    }
    return static_cast<int64_t>(done);
  }

  Fd socket_;
  uint8_t* memory_;
  const pid_t agent_;
  Fd file_;
};

}  // namespace

void help_with_file(Fd socket, Fd memory, Fd root, Fd directory, pid_t agent) {
  end_with_parent(agent);
  ::prctl(PR_SET_NAME, "rocefs-file");
  struct stat status;
  if (::fstat(memory.get(), &status) != 0) ::_exit(1);
  void* at = ::mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ | PROT_WRITE,
                    MAP_SHARED, memory.get(), 0);
  if (at == MAP_FAILED) ::_exit(1);
  memory.reset();
  Helper helper(std::move(socket), static_cast<uint8_t*>(at), agent);
  if (helper.open(root, directory)) {
    root.reset();
    directory.reset();
    helper.serve();
  }
  ::_exit(0);
}

}  // namespace rocefs
